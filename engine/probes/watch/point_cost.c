// SPDX-License-Identifier: MIT
#include "probes/watch/point_cost.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/verbs.h"
#include "trace/events.h"

#define CALLS 500
#define PAIRS 15 /* of stretches without and with events */

#if defined(__x86_64__) || defined(__i386__)
#define SAVED "ebx"
#elif defined(__aarch64__)
#define SAVED "x19"
#elif defined(__arm__)
#define SAVED "r4"
#elif defined(__riscv)
#define SAVED "s1"
#elif defined(__loongarch__)
#define SAVED "$s0"
#else
#define SAVED "cc" /* none is known */
#endif

/* It begins as most functions do: it saves a register. */
__attribute__((noinline)) static void called(void)
{
	__asm__ volatile("" ::: SAVED, "memory");
}

/* Its first instruction is one that the kernel executes by a single step, with a second exception. */
__attribute__((noinline)) static void stepped(void)
{
	volatile char room[64];

	room[0] = 0;
	room[sizeof(room) - 1] = room[0];
}

static int64_t stretch_ns(void)
{
	int64_t begin_ns = clock_now_ns(CLOCK_THREAD_CPUTIME_ID); /* others may run meanwhile */

	for (int i = 0; i < CALLS; i++) {
		called();
		stepped();
	}
	return (clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / CALLS;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t point_cost_measure(int instance, const char *event)
{
	int64_t costs[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		costs[i] = -stretch_ns();
		if (!trace_event_enable(instance, event, true))
			return -1;
		costs[i] += stretch_ns();
		if (!trace_event_enable(instance, event, false))
			return -1;
	}
	qsort(costs, PAIRS, sizeof(costs[0]), compare);
	return costs[PAIRS / 2] > 0 ? costs[PAIRS / 2] : 0;
}

/* Finds the place in this program's file of an address. Returns false if no mapping has it. */
static bool file_offset(uintptr_t address, unsigned long long *offset)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 200];
	bool found = false;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		char *end;
		unsigned long long first = strtoull(line, &end, 16), last;

		last = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
		found = address >= first && address < last;
		if (found) /* " r-xp OFFSET ..." */
			*offset = strtoull(end + 6, NULL, 16) + (address - first);
	}
	if (maps)
		fclose(maps);
	return found;
}

static int verb_point_place(int argc, char **argv)
{
	char path[PATH_MAX];
	int status = options_parse(NULL, argc, argv);
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	unsigned long long offset, stepped_offset;
	struct json j;

	if (status)
		return status < 0 ? STATUS_OK : status;
	if (len < 0 || !file_offset((uintptr_t)called, &offset) ||
	    !file_offset((uintptr_t)stepped, &stepped_offset))
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot find this program's own file");
	path[len] = '\0';
	json_start(&j, stdout);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "point_place");
	json_str(&j, "file", path);
	json_uint(&j, "offset", offset);
	json_uint(&j, "stepped_offset", stepped_offset);
	json_close(&j, '}');
	return json_line(&j) ? STATUS_OK : STATUS_CANNOT_MEASURE;
}

AGENT_VERB("point-place", verb_point_place,
	   "print the place in the engine at which the cost of a point is measured")
