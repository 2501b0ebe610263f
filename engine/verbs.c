// SPDX-License-Identifier: MIT
#include "verbs.h"

const struct verb verbs[] = {
	{"wakeup", verb_wakeup, "latency from the expected release to the first instruction, a thread a CPU"},
	{"calibrate", verb_calibrate, "resolution of each clock and the cost of reading it"},
	{"read", verb_read, "files and globs into one JSON object"},
	{"set", verb_set, "write settings, their old values in a journal first"},
	{"restore", verb_restore, "put settings back"},
	{"guard", verb_guard,
	 "run a program under a lease; end it and put settings back when the lease ends"},
	{"attach", verb_attach, "follow a guarded program that outlives its connection"},
};
const size_t verb_count = sizeof(verbs) / sizeof(verbs[0]);
