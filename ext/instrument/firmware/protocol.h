/* SPDX-License-Identifier: MIT */
/* The contents of the frames: docs/formats/instrument.md. Everything is little-endian and packed in this
 * order. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdint.h>

#define PROTOCOL_VERSION 1u
#define FIRMWARE_VERSION "1.0"

enum frame_type {
	/* commands */
	IDENTIFY = 0x01,
	CONFIGURE = 0x02,
	START = 0x03,
	STOP = 0x04,
	DUMP = 0x05,
	GET_STATE = 0x06,
	BOOTLOADER = 0x07,
	/* answers: the command with bit 7 set */
	ANSWER = 0x80,
	STATE = 0x86,
	SUMMARY = 0x90,
	BINS = 0x91,
	OUTLIERS = 0x92,
	EVENTS = 0xa0,
	REFUSED = 0xff,
};

enum mode { MODE_RESPONSE = 1, MODE_PERIODIC = 2, MODE_LOOPBACK = 3 };
enum stimulus_edges { EDGES_BOTH = 0, EDGES_RISING = 1, EDGES_FALLING = 2 };
enum answer_kind { ANSWER_FOLLOWS = 0, ANSWER_ANY_EDGE = 1 };
enum timing { TIMING_FIXED = 0, TIMING_RANDOM = 1 };

#define FLAG_STREAM_EVENTS 1u
#define FLAG_LOOPBACK_INSIDE 2u

/* Ticks are of the clock whose rate the identity names: 125,000,000 a second. */
struct __attribute__((packed)) configuration {
	uint8_t mode;
	uint8_t edges;	/* the edges that are stimuli, or are compared in PERIODIC */
	uint8_t answer; /* an edge to the level of the stimulus, or any edge */
	uint8_t timing; /* a fixed period, or a random time from the answer to the next stimulus */
	uint8_t flags;	/* inside: LOOPBACK reads the answer from the stimulus pin */
	uint8_t stimulus_pin;
	uint8_t answer_pin;
	uint8_t pull;	     /* resistor at the answer pin: 0 none, 1 up, 2 down */
	uint32_t period_min; /* ticks, 16 to 2^31 - 1; fixed: the period */
	uint32_t period_max;
	uint32_t limit;	  /* ticks after which a stimulus is missed; shorter than a fixed period */
	uint32_t nominal; /* PERIODIC: the distances are compared with it */
	uint64_t count;	  /* of stimuli or distances, 0: until it is stopped */
	uint32_t seed;	  /* of the random times */
};

enum run_state { STATE_IDLE = 0, STATE_RUNNING = 1, STATE_FINISHED = 2 };

struct __attribute__((packed)) state {
	uint8_t run;
	uint8_t mode;
	uint16_t reserved;
	uint64_t now; /* ticks since the start, by the microsecond timer */
	uint64_t stimuli;
	uint64_t answers;
	uint64_t missed;
	uint64_t late;	   /* answers after their limit */
	uint64_t extra;	   /* edges of the answer line that answer nothing */
	uint64_t edges;	   /* of the answer line, all */
	uint64_t glitches; /* edges that only one state machine saw */
	uint64_t voided;   /* stimuli whose edges were lost with a full ring */
	uint64_t edges_lost;
	uint64_t events_dropped;
	uint32_t capture_restarts;
	uint32_t frames_damaged;
};

/* An event is 32 bits: ticks since the one before (or since the frame's base), and four flags. */
#define EVENT_ANSWER_LINE 1u
#define EVENT_HIGH 2u
#define EVENT_SINGLE 4u
#define EVENT_ACCEPTED 8u
#define EVENT_FLAG_BITS 4u

struct __attribute__((packed)) summary {
	uint64_t count;
	int64_t min, max, sum;
	uint64_t squares_low, squares_high;
};

#endif
