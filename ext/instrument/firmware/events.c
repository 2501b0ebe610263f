/* SPDX-License-Identifier: MIT */
#include "events.h"

#include <stddef.h>

#include "board.h"
#include "link.h"
#include "protocol.h"

#define EVENTS_A_FRAME 56u
#define MAX_DISTANCE ((1u << (32u - EVENT_FLAG_BITS)) - 1u)
#define MAX_AGE_US 10000u

static struct __attribute__((packed)) {
	uint32_t first; /* number of the first event of the frame, of all since the start, mod 2^32 */
	uint64_t base;
	uint32_t events[EVENTS_A_FRAME];
} frame;
static uint32_t count;
static uint32_t total;
static uint64_t last_time;
static uint64_t since_us;
static uint64_t dropped;

void events_start(void)
{
	count = 0;
	total = 0;
	dropped = 0;
}

static void send(void)
{
	if (count > 0 && !link_send_event(EVENTS, &frame, offsetof(typeof(frame), events) + 4u * count))
		dropped += count;
	count = 0;
}

void events_add(const struct edge *edge, bool accepted)
{
	if (count > 0 && edge->time - last_time > MAX_DISTANCE)
		send();
	if (count == 0) {
		frame.first = total;
		frame.base = edge->time;
		last_time = edge->time;
		since_us = board_time_us();
	}
	frame.events[count++] = (uint32_t)(edge->time - last_time) << EVENT_FLAG_BITS |
				(edge->line == LINE_ANSWER ? EVENT_ANSWER_LINE : 0) |
				(edge->high ? EVENT_HIGH : 0) | (edge->single ? EVENT_SINGLE : 0) |
				(accepted ? EVENT_ACCEPTED : 0);
	last_time = edge->time;
	total++;
	if (count == EVENTS_A_FRAME)
		send();
}

void events_flush(bool all)
{
	if (all || (count > 0 && board_time_us() - since_us >= MAX_AGE_US))
		send();
}

bool events_waiting(void)
{
	return count > 0;
}

uint64_t events_dropped(void)
{
	return dropped;
}
