/* SPDX-License-Identifier: MIT */
/*
 * Assembles what happened to frames into cycles, each of which ends in exactly one way. The thread that
 * drains calls this; it reads no clock and sends nothing.
 */
#ifndef RTGAUGE_CYCLES_H
#define RTGAUGE_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happened to a frame. All times are in ns on CLOCK_MONOTONIC; 0: unknown. */
enum frame_event_kind { FRAME_NOT_SENT, FRAME_SENT, FRAME_DEPARTED, FRAME_RECEIVED, FRAME_NONE };
struct frame_event {
	enum frame_event_kind kind;
	int64_t cycle;
	/* the thread's clock: before the send, after the receive, when it gave up the frame, or, for
	 * FRAME_NONE, when it found no frame waiting */
	int64_t time_ns;
	int64_t stamp_ns;    /* the kernel's time stamp of departure or arrival */
	int64_t hardware_ns; /* the network card's, on its own clock */
};

/* How a cycle ends. The first three say something about the far end or the way there; the others are this
 * machine's own. */
enum outcome {
	CYCLE_ANSWERED,	 /* sent in time, and answered before the next release */
	CYCLE_LATE,	 /* the answer came after the next release */
	CYCLE_LOST,	 /* no answer came within the timeout */
	CYCLE_SENT_LATE, /* the frame left more than sent_late_ns after its release, whatever came back */
	CYCLE_READ_LATE, /* the answer arrived before the next release, but was read after it, or never looked
			    for */
	CYCLE_NOT_SENT,	 /* the thread came after the next release, or the kernel refused the frame */
	CYCLE_OUTCOMES,
};
extern const char *const outcome_names[CYCLE_OUTCOMES];

struct cycle {
	int64_t number, release_ns;
	int64_t send_ns;     /* just before the frame was sent; 0: not sent */
	int64_t departed_ns; /* the kernel's time stamp when the driver got the frame; 0: none */
	int64_t arrived_ns;  /* the kernel's time stamp of the answer; 0: none */
	int64_t back_ns;     /* just after the answer was read; 0: no answer */
	int64_t hardware_departed_ns, hardware_arrived_ns; /* on the network card's clock; 0: none */
	int64_t noted_ns; /* when the thread found that it cannot send the frame; 0: sent */
	enum outcome outcome;
	bool known; /* its beginning was taken */
	bool over;  /* it was finished */
};

/* Frames that were no first answer in their cycle or just before its end. */
struct other_frames {
	int64_t duplicate;     /* an answer to a cycle that has one */
	int64_t reordered;     /* an answer after the answer to a later cycle */
	int64_t after_timeout; /* an answer to a cycle that was already lost */
};

struct cycles {
	/* set before cycles_make */
	int64_t start_ns, interval_ns, timeout_ns, sent_late_ns;
	bool stamped;	       /* time stamps of departures are expected */
	bool hardware;	       /* also the network card's */
	int64_t warm_up_count; /* cycles before this one are not counted */
	/* called for each finished cycle, in their order */
	void (*finished)(void *to, const struct cycle *cycle);
	void *to;

	int64_t first, next; /* the oldest cycle that is not finished, and the one after the newest */
	int64_t answered;    /* the newest answered cycle; -1: none */
	int64_t reached_ns;  /* every frame that arrived before was taken */
	struct cycle *table;
	size_t mask;
	int64_t counts[CYCLE_OUTCOMES];
	struct other_frames others;
	int64_t foreign; /* frames with the number of a cycle that was never sent */
};

/* Returns false if there is no memory. */
bool cycles_make(struct cycles *c);

/*
 * Returns how long a frame and its answer were outside of the network card, by the card's own clock; -1: the
 * card did not stamp both, or its stamps do not lie within the kernel's.
 */
int64_t cycle_outside_ns(const struct cycle *cycle);

/* Takes an event. Events of the same kind come in the order of time. */
void cycles_take(struct cycles *c, const struct frame_event *event);

/*
 * Finishes the cycles that nothing can change any more. A cycle is lost only after the thread itself looked
 * for the answer in vain: a thread that was kept from looking proves nothing.
 */
void cycles_finish(struct cycles *c);

/* Finishes all cycles. stopped: drops the ones that could still be answered. */
void cycles_finish_all(struct cycles *c, bool stopped);

#endif
