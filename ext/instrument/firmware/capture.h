/* SPDX-License-Identifier: MIT */
/*
 * Captures every edge of up to two lines, with its time in ticks of 8 ns.
 *
 * Two state machines of PIO0 watch each line. Each looks at the pin in every second cycle and counts these
 * looks down; one looks in the even cycles, the other in the odd ones. The earlier of their two times is
 * the cycle of the edge. Only one of them sees a level that lasts a single cycle: a glitch. After an edge a
 * state machine needs 6 cycles before it looks again.
 *
 * DMA moves the times into rings, without the core. The counts have 32 bits and wrap after 68 s; the
 * microsecond timer, of the same crystal, tells which turn it is.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

enum line { LINE_STIMULUS, LINE_ANSWER, LINE_COUNT };

struct edge {
	uint64_t time; /* ticks since the start */
	enum line line;
	bool high;   /* the level after it */
	bool single; /* only one of the two state machines saw it */
};

struct capture_losses {
	uint64_t edges;	   /* lost in full rings, at least this many */
	uint32_t restarts; /* of the capture, after a loss */
};

/* Watches the lines at these pins; both may be the same pin. Time 0 is now. If `with_stimulus` is false,
 * the first line is not watched. */
void capture_start(unsigned stimulus_pin, unsigned answer_pin, bool with_stimulus);
void capture_stop(void);

/* Looks at the rings. Edges up to this moment, less 2 us, can then be fetched. Returns false if edges were
 * lost: all unfetched ones are gone, and the capture begins anew while time continues. */
bool capture_look(void);
/* The next edge in the order of time. */
bool capture_next(struct edge *edge);
/* Whether there are edges that have not been fetched. */
bool capture_pending(void);
/* The time up to which every edge has been fetched, once capture_next returns false. */
uint64_t capture_horizon(void);
/* Ticks since the start, by the microsecond timer: at most 2 us off. */
uint64_t capture_now(void);
struct capture_losses capture_losses(void);
bool capture_running(void);

#endif
