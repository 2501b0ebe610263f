// SPDX-License-Identifier: MIT
#include "verbs.h"

const struct verb verbs[] = {
	{"wakeup", verb_wakeup, "latency from the expected release to the first instruction, a thread a CPU"},
	{"noise", verb_noise, "gaps in a task that only reads the clock, and what the kernel knows of each"},
	{"switch", verb_switch, "cost of a task switch: tasks of equal priority yield to each other"},
	{"preempt", verb_preempt, "from an event to the first instruction of a task, while a lower one runs"},
	{"semaphore", verb_semaphore, "from one task's post to the other's return from wait"},
	{"inversion", verb_inversion,
	 "does a high task starve that waits for a lock of a low one, by kind of lock"},
	{"calibrate", verb_calibrate, "resolution of each clock and the cost of reading it"},
	{"taskset", verb_taskset, "a set of periodic tasks: period, response, jitter, deadline misses"},
	{"tire", verb_tire, "a physical simulation, as fast as possible or a step a period"},
	{"periodic", verb_periodic, "a task toggles a line at a fixed period: how late, how even"},
	{"response", verb_response, "from a stimulus on a line to the answer of a task that waits for it"},
	{"read", verb_read, "files and globs into one JSON object"},
	{"set", verb_set, "write settings, their old values in a journal first"},
	{"restore", verb_restore, "put settings back"},
	{"gather", verb_gather, "move the tasks of a control group into a new one below it"},
	{"enter", verb_enter, "run a program in a control group or on some CPUs"},
	{"guard", verb_guard,
	 "run a program under a lease; end it and put settings back when the lease ends"},
	{"attach", verb_attach, "follow a guarded program that outlives its connection"},
};
const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);
