// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/parts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stream.h"

#define EVENTS 65536
#define WAITING 16384
#define SETTLE_NS (NS_PER_S / 5)
#define IRQS "/sys/kernel/irq"

/* Returns the number of the interrupt with this name; TRACE_NO_INTERRUPT: there is none. */
static int find_interrupt(const char *name)
{
	DIR *folder = opendir(IRQS);
	int found = TRACE_NO_INTERRUPT;
	struct dirent *entry;

	while (folder && found < 0 && (entry = readdir(folder))) {
		char path[320], actions[256] = "";
		FILE *file;

		snprintf(path, sizeof(path), IRQS "/%s/actions", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(actions, sizeof(actions), file) && strstr(actions, name))
			found = atoi(entry->d_name);
		fclose(file);
	}
	if (folder)
		closedir(folder);
	return found;
}

bool parts_choose(struct parts *parts, const struct path_end *slave, bool from_stimulus, int cpu)
{
	static const char *const names[PARTS] = {"interrupt-latency", "service-time", "scheduling-latency",
						 "scheduling-duration"};

	parts->events = memory_get(EVENTS * sizeof(*parts->events));
	parts->waiting = memory_get(WAITING * sizeof(*parts->waiting));
	parts->series = memory_get(PARTS * sizeof(*parts->series));
	if (!parts->events || !parts->waiting || !parts->series)
		return false;
	parts->interrupt = slave->kind == &path_gpio ? find_interrupt(PATH_SLAVE_NAME)
			   : slave->kind == &path_udp || slave->kind == &path_loop_udp ? TRACE_NET_RX
										       : TRACE_NO_INTERRUPT;
	parts->known[PART_INTERRUPT_LATENCY] = from_stimulus && parts->interrupt != TRACE_NO_INTERRUPT;
	parts->known[PART_SERVICE_TIME] = parts->interrupt != TRACE_NO_INTERRUPT;
	parts->known[PART_SCHEDULING_LATENCY] = parts->known[PART_SCHEDULING_DURATION] = true;
	for (int i = 0; i < PARTS; i++) {
		parts->series[i].metric = "response";
		parts->series[i].cpu = cpu;
		parts->series[i].labels[0] = (struct label){"segment", names[i]};
	}
	return true;
}

static void take_events(struct parts *parts)
{
	parts->event_count -= parts->event_first;
	memmove(parts->events, parts->events + parts->event_first,
		parts->event_count * sizeof(parts->events[0]));
	parts->event_first = 0;
	parts->event_count = trace_take(&parts->trace, parts->events, parts->event_count, EVENTS);
}

/* Returns the time of the first event of a kind from this time on; 0: there is none up to end_ns. */
static int64_t first(const struct parts *parts, enum trace_kind kind, int64_t from_ns, int64_t end_ns)
{
	for (unsigned int i = parts->event_first;
	     i < parts->event_count && parts->events[i].time_ns <= end_ns; i++) {
		if (parts->events[i].kind == kind && parts->events[i].time_ns >= from_ns)
			return parts->events[i].time_ns;
	}
	return 0;
}

static void take_apart(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j)
{
	int64_t irq_ns = parts->interrupt == TRACE_NO_INTERRUPT
				 ? from_ns
				 : first(parts, TRACE_INTERRUPT, from_ns, woke_ns);
	int64_t waking_ns = irq_ns ? first(parts, TRACE_WAKING, irq_ns, woke_ns) : 0;
	int64_t switch_ns = waking_ns ? first(parts, TRACE_SWITCH, waking_ns, woke_ns) : 0;
	const int64_t begin[] = {from_ns, irq_ns, waking_ns, switch_ns};
	const int64_t end[] = {irq_ns, waking_ns, switch_ns, woke_ns};

	while (parts->event_first < parts->event_count &&
	       parts->events[parts->event_first].time_ns <= woke_ns)
		parts->event_first++;
	if (!switch_ns) {
		parts->unmatched++;
		return;
	}
	parts->matched++;
	for (int i = 0; i < PARTS; i++) {
		if (parts->known[i])
			series_feed_timed(&parts->series[i], from_ns, end[i] - begin[i], j);
	}
}

static void take_oldest(struct parts *parts, struct json *j)
{
	unsigned int at = parts->waiting_first++ % WAITING;

	parts->waiting_count--;
	take_apart(parts, parts->waiting[at].from_ns, parts->waiting[at].woke_ns, j);
}

void parts_feed(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j)
{
	unsigned int at;

	if (parts->waiting_count == WAITING)
		take_oldest(parts, j);
	at = (parts->waiting_first + parts->waiting_count++) % WAITING;
	parts->waiting[at].from_ns = from_ns;
	parts->waiting[at].woke_ns = woke_ns;
}

void parts_take(struct parts *parts, bool last, struct json *j)
{
	int64_t settled_ns = clock_now_ns(CLOCK_MONOTONIC) - SETTLE_NS;

	if (last)
		clock_pause_ns(SETTLE_NS);
	take_events(parts);
	while (parts->waiting_count &&
	       (last || parts->waiting[parts->waiting_first % WAITING].woke_ns <= settled_ns))
		take_oldest(parts, j);
}

void parts_conclude(const struct parts *parts, struct json *j)
{
	char text[32] = "none";

	if (parts->interrupt == TRACE_NET_RX)
		snprintf(text, sizeof(text), "softirq NET_RX");
	else if (parts->interrupt != TRACE_NO_INTERRUPT)
		snprintf(text, sizeof(text), "irq %d", parts->interrupt);
	stream_result(j, "parts");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_str(j, "interrupt", text);
	json_int(j, "split", parts->matched);
	json_int(j, "not_split", parts->unmatched);
	stream_result_end(j);
	if (parts->interrupt == TRACE_NO_INTERRUPT)
		stream_mark(
			j, "no-interrupt", SEVERITY_NOTE, -1,
			"this path does not use an interrupt, because the master itself wakes the slave, so "
			"the results lack interrupt latency and service time");
	if (parts->unmatched * 5 > parts->matched)
		stream_mark(
			j, "parts-missing", SEVERITY_DOUBTFUL, -1,
			"of %lld responses, rtgauge could not split %lld into parts, because the kernel did "
			"not trace every switch to the slave (some kernels leave out switches from an idle "
			"CPU); the parts cover the other responses",
			(long long)parts->matched + parts->unmatched, (long long)parts->unmatched);
	if (trace_dropped(&parts->trace))
		stream_mark(j, "trace-dropped", SEVERITY_NOTE, -1,
			    "rtgauge could not split %lld responses into parts, because the kernel dropped "
			    "trace events",
			    (long long)parts->unmatched);
}
