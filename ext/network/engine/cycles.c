// SPDX-License-Identifier: MIT
#include "ext/network/engine/cycles.h"

#include "base/memory.h"

#define SPARE 1024 /* finished cycles that are remembered at least, to recognise a second answer */

const char *const outcome_names[CYCLE_OUTCOMES] = {
	[CYCLE_ANSWERED] = "answered",	 [CYCLE_LATE] = "late",		  [CYCLE_LOST] = "lost",
	[CYCLE_SENT_LATE] = "sent-late", [CYCLE_READ_LATE] = "read-late", [CYCLE_NOT_SENT] = "not-sent",
};

bool cycles_make(struct cycles *c)
{
	size_t size = SPARE;

	while ((int64_t)size < SPARE + c->timeout_ns / c->interval_ns)
		size *= 2;
	c->table = memory_get(size * sizeof(*c->table));
	c->mask = size - 1;
	c->answered = -1;
	return c->table != NULL;
}

static struct cycle *at(const struct cycles *c, int64_t number)
{
	return &c->table[(size_t)number & c->mask];
}

/* Returns the open or remembered cycle with this number; NULL: it is forgotten, or never began. */
static struct cycle *find(const struct cycles *c, int64_t number)
{
	struct cycle *cycle = number >= 0 && number < c->next ? at(c, number) : NULL;

	return cycle && cycle->known && cycle->number == number ? cycle : NULL;
}

static bool is_given_up(const struct cycles *c, const struct cycle *cycle)
{
	return c->reached_ns - cycle->release_ns > c->timeout_ns;
}

static enum outcome outcome_of(const struct cycles *c, const struct cycle *cycle)
{
	int64_t left_ns = cycle->departed_ns > cycle->send_ns ? cycle->departed_ns : cycle->send_ns;
	int64_t over_ns = cycle->release_ns + c->interval_ns;

	if (!cycle->send_ns)
		return CYCLE_NOT_SENT;
	if (left_ns - cycle->release_ns > c->sent_late_ns)
		return CYCLE_SENT_LATE;
	if (!cycle->back_ns)
		return is_given_up(c, cycle) ? CYCLE_LOST : CYCLE_READ_LATE;
	if (cycle->back_ns <= over_ns)
		return CYCLE_ANSWERED;
	return cycle->arrived_ns && cycle->arrived_ns <= over_ns ? CYCLE_READ_LATE : CYCLE_LATE;
}

static void finish_first(struct cycles *c)
{
	struct cycle *cycle = at(c, c->first);

	cycle->outcome = outcome_of(c, cycle);
	cycle->over = true;
	if (cycle->number >= c->warm_up_count)
		c->counts[cycle->outcome]++;
	c->first++;
	c->finished(c->to, cycle);
}

/* Begins cycles up to this one. The thread reports every cycle, so usually there is just one. */
static struct cycle *begin(struct cycles *c, int64_t number)
{
	while (c->next <= number) {
		/* Only if the thread did not read for longer than the timeout. */
		while (c->next - c->first > (int64_t)c->mask)
			finish_first(c);
		*at(c, c->next) = (struct cycle){.number = c->next,
						 .release_ns = c->start_ns + c->next * c->interval_ns,
						 .known = true};
		c->next++;
	}
	return at(c, number);
}

static void receive(struct cycles *c, const struct frame_event *event)
{
	struct cycle *cycle = find(c, event->cycle);
	bool counted = event->cycle >= c->warm_up_count;
	int64_t came_ns = event->stamp_ns ? event->stamp_ns : event->time_ns;

	/* Frames come in the order of arrival, so what came before this cycle was sent was read. */
	if (cycle && cycle->send_ns > c->reached_ns)
		c->reached_ns = cycle->send_ns;
	if (event->cycle >= c->next || (cycle && !cycle->send_ns)) {
		c->foreign++;
	} else if (cycle && cycle->back_ns) {
		c->others.duplicate += counted;
	} else if (!cycle || cycle->over || came_ns - cycle->release_ns > c->timeout_ns) {
		c->others.after_timeout += counted;
	} else {
		cycle->hardware_arrived_ns = event->hardware_ns;
		cycle->back_ns = event->time_ns;
		cycle->arrived_ns = event->stamp_ns;
		c->others.reordered += counted && event->cycle < c->answered;
		if (event->cycle > c->answered)
			c->answered = event->cycle;
	}
}

int64_t cycle_outside_ns(const struct cycle *cycle)
{
	int64_t outside_ns = cycle->hardware_arrived_ns - cycle->hardware_departed_ns;
	bool known = cycle->hardware_departed_ns && cycle->hardware_arrived_ns;

	return known && outside_ns >= 0 && outside_ns <= cycle->arrived_ns - cycle->departed_ns ? outside_ns
												: -1;
}

void cycles_take(struct cycles *c, const struct frame_event *event)
{
	struct cycle *cycle;

	switch (event->kind) {
	case FRAME_NOT_SENT:
		if (event->cycle >= c->next)
			begin(c, event->cycle)->noted_ns = event->time_ns;
		break;
	case FRAME_SENT:
		if (event->cycle >= c->next)
			begin(c, event->cycle)->send_ns = event->time_ns;
		break;
	case FRAME_DEPARTED:
		cycle = find(c, event->cycle);
		/* The kernel reports the two time stamps one after the other. */
		if (cycle && !cycle->over && !cycle->departed_ns)
			cycle->departed_ns = event->stamp_ns;
		if (cycle && !cycle->over && !cycle->hardware_departed_ns)
			cycle->hardware_departed_ns = event->hardware_ns;
		break;
	case FRAME_RECEIVED:
		receive(c, event);
		break;
	case FRAME_NONE:
		if (event->time_ns > c->reached_ns)
			c->reached_ns = event->time_ns;
	}
}

void cycles_finish(struct cycles *c)
{
	while (c->first < c->next) {
		const struct cycle *cycle = at(c, c->first);
		bool stamped =
			(cycle->departed_ns || !c->stamped) && (cycle->hardware_departed_ns || !c->hardware);
		bool settled = !cycle->send_ns || (cycle->back_ns && stamped);

		if (!settled && !is_given_up(c, cycle))
			return;
		finish_first(c);
	}
}

void cycles_finish_all(struct cycles *c, bool stopped)
{
	while (c->first < c->next) {
		const struct cycle *cycle = at(c, c->first);

		if (stopped && cycle->send_ns && !cycle->back_ns && !is_given_up(c, cycle))
			c->first++;
		else
			finish_first(c);
	}
}
