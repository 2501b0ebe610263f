// SPDX-License-Identifier: MIT
/*
 * Replays kernel events of one thread (tests/support/loop_simulator.py has the format) through the model of
 * loops, and writes what it made of them. Schedules follow each other; a line `N tid period early` begins
 * each, and `.` ends it. The answers: `M kind unclear stuck period sleep`, `A release start` and `D release
 * end` for an activation (`C release at-least` before it: no more of its response is certain), `L release 0`
 * for one whose end was lost, `Q release age` and `P release age` for one that has not ended and one that has
 * not begun, `O release at-least` for a release without a wait (`R release least-response` before it),
 * `U release` for one while events were lost, and `.`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/futex.h>

#include "probes/watch/cycles.h"

static int64_t begin_ns, end_ns;

static void take(void *user, enum cycle_news news, const struct activation *activation)
{
	static const char letters[] = {
		[CYCLE_BEGUN] = 'A',	[CYCLE_DONE] = 'D', [CYCLE_OVERRUN] = 'O',
		[CYCLE_LOST_END] = 'L', [CYCLE_CUT] = 'Q',  [CYCLE_UNKNOWN_RELEASE] = 'U'};
	int64_t value = news == CYCLE_BEGUN  ? activation->start_ns
			: news == CYCLE_DONE ? activation->end_ns
					     : activation->at_least_ns;

	(void)user;
	if (news == CYCLE_DONE && !activation->certain)
		printf("C %lld %lld\n", (long long)activation->release_ns,
		       (long long)activation->least_response_ns);
	if (news == CYCLE_OVERRUN)
		printf("R %lld %lld\n", (long long)activation->release_ns,
		       (long long)activation->least_response_ns);
	printf("%c %lld %lld\n", news == CYCLE_CUT && !activation->start_ns ? 'P' : letters[news],
	       (long long)activation->release_ns, (long long)value);
}

static int64_t next(char **at)
{
	return strtoll(*at, at, 10);
}

static void read_call(char *at, struct blocking_call *call)
{
	char name[64], flags[32];
	int len = 0;

	*call = (struct blocking_call){.number = -1};
	if (sscanf(at, " %63s%n", name, &len) != 1)
		return;
	at += len;
	call->number = blocking_call_number(name);
	call->arguments[0] = (uint64_t)next(&at);
	if (sscanf(at, " %31s", flags) != 1 || strcmp(name, "futex") != 0)
		return;
	call->arguments[1] = !strcmp(flags, "lock_pi")	      ? FUTEX_LOCK_PI
			     : strncmp(flags, "wait", 4) != 0 ? FUTEX_WAKE
							      : FUTEX_WAIT;
	call->arguments[2] = !strcmp(flags, "wait2") ? 2 : 0;
}

/* Returns false if the line is no event. */
static bool read_event(char *line, pid_t tid, struct sched_event *event)
{
	char *at = line + 1, state[8] = "";
	int len = 0;

	*event = (struct sched_event){.time_ns = next(&at)};
	event->cpu = (int)next(&at);
	event->current = (pid_t)next(&at);
	event->to = event->current;
	switch (line[0]) {
	case 'E':
		event->kind = SCHED_SYSCALL;
		read_call(at, &event->call);
		return true;
	case 'X':
		event->kind = SCHED_RETURN;
		event->result = next(&at);
		return true;
	case 'T':
		event->kind = SCHED_TIMER;
		event->timer = (uint64_t)next(&at);
		event->expiry_ns = next(&at);
		return true;
	case 'W':
		event->kind = SCHED_WAKING;
		event->hardirq = next(&at);
		event->to = (pid_t)next(&at);
		return event->to == tid;
	case 'S':
		event->kind = SCHED_SWITCH;
		event->from = event->current;
		if (sscanf(at, " %7s%n", state, &len) != 1)
			return false;
		at += len;
		event->to = (pid_t)next(&at);
		event->runnable = state[0] == 'R';
		event->held = state[0] == 'D' || state[0] == 'T';
		return event->to == tid || event->from == tid;
	default:
		return false;
	}
}

static void use(struct cycles *cycles, struct waits *waits, const struct sched_event *event,
		const struct clock_offsets *offsets)
{
	switch (waits_take(waits, event, offsets)) {
	case NEWS_ENTERED:
		cycles_enter(cycles, &waits->now);
		break;
	case NEWS_RETURNED:
		cycles_return(cycles, waits, &waits->now);
		break;
	case NEWS_FIRED:
		cycles_return(cycles, waits, &waits->any);
		break;
	default:
		break;
	}
}

/* early: chooses the wait as soon as it can, not at the end. */
static void replay(pid_t tid, int64_t period_ns, bool early)
{
	static const char *const kinds[] = {"unknown",	    "periodic", "relative",
					    "own schedule", "data",	"poller"};
	const struct cycle_wish wish = {.call = -1, .fd = -1, .period_ns = period_ns};
	struct clock_offsets offsets = {0};
	struct cycles cycles = {0};
	struct waits waits = {0};
	char line[256];
	int64_t last_ns = 0, gone_ns = 0;
	bool gone = false, stuck;

	begin_ns = end_ns = 0;
	waits_begin(&waits, tid, true);
	cycles_begin(&cycles, &wish, take, NULL);
	while (fgets(line, sizeof(line), stdin) && line[0] != '.') {
		struct sched_event event;
		char *at = line + 1;
		int64_t time_ns = next(&at);

		if (line[0] == 'O') {
			offsets.real_before_ns = offsets.real_ns;
			offsets.real_ns = next(&at);
			offsets.tai_ns = offsets.real_ns;
		} else if (line[0] == 'B') {
			begin_ns = time_ns;
		} else if (line[0] == 'F') {
			end_ns = time_ns;
		} else if (line[0] == 'L' && gone) {
			continue;
		} else if (line[0] == 'L') {
			waits_lost(&waits);
			cycles_lost(&cycles, &waits, last_ns, time_ns);
		} else if (read_event(line, tid, &event)) {
			use(&cycles, &waits, &event, &offsets);
			if (early && begin_ns)
				cycles_learn(&cycles, &waits, false);
			if (event.kind == SCHED_SWITCH && event.from == tid && strstr(line, " X ")) {
				gone = true;
				gone_ns = event.time_ns;
			}
		}
		last_ns = time_ns;
	}
	stuck = cycles_end(&cycles, &waits, gone ? gone_ns : end_ns, gone);
	printf("M %s %d %d %.0f %.0f\n.\n", kinds[cycles.chosen ? cycles.model.kind : CYCLE_UNKNOWN],
	       cycles.choice.unclear, stuck, cycles_period_ns(&cycles), cycles.model.sleep_ns);
	cycles_free(&cycles);
}

int main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		char *at = line + 1;
		pid_t tid = (pid_t)next(&at);

		int64_t period_ns = next(&at);

		if (line[0] == 'N')
			replay(tid, period_ns, next(&at));
	}
	return 0;
}
