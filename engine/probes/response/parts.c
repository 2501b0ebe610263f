// SPDX-License-Identifier: MIT
#include "probes/response/parts.h"

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

static struct trace_event *events; /* EVENTS of them; static, they would be locked in every probe */
static unsigned int event_first, event_count; /* those before event_first are of responses that are done */

/* Responses whose events may not all have come: what a CPU traced is read up to some ten ms late. */
static struct {
	int64_t from_ns, woke_ns;
} * waiting; /* WAITING of them */
static unsigned int waiting_first, waiting_count;

/* The number of the interrupt that the kernel names so; TRACE_NO_INTERRUPT: there is none. */
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

	events = memory_get(EVENTS * sizeof(*events));
	waiting = memory_get(WAITING * sizeof(*waiting));
	parts->series = memory_get(PARTS * sizeof(*parts->series));
	if (!events || !waiting || !parts->series)
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

static void take_events(void)
{
	event_count -= event_first;
	memmove(events, events + event_first, event_count * sizeof(events[0]));
	event_first = 0;
	event_count = trace_take(events, event_count, EVENTS);
}

/* The first event of a kind from this time on; 0: there is none up to end_ns. */
static int64_t first(enum trace_kind kind, int64_t from_ns, int64_t end_ns)
{
	for (unsigned int i = event_first; i < event_count && events[i].time_ns <= end_ns; i++) {
		if (events[i].kind == kind && events[i].time_ns >= from_ns)
			return events[i].time_ns;
	}
	return 0;
}

static void take_apart(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j)
{
	int64_t irq_ns =
		parts->interrupt == TRACE_NO_INTERRUPT ? from_ns : first(TRACE_INTERRUPT, from_ns, woke_ns);
	int64_t waking_ns = irq_ns ? first(TRACE_WAKING, irq_ns, woke_ns) : 0;
	int64_t switch_ns = waking_ns ? first(TRACE_SWITCH, waking_ns, woke_ns) : 0;
	const int64_t begin[] = {from_ns, irq_ns, waking_ns, switch_ns};
	const int64_t end[] = {irq_ns, waking_ns, switch_ns, woke_ns};

	while (event_first < event_count && events[event_first].time_ns <= woke_ns)
		event_first++;
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
	unsigned int at = waiting_first++ % WAITING;

	waiting_count--;
	take_apart(parts, waiting[at].from_ns, waiting[at].woke_ns, j);
}

void parts_feed(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j)
{
	unsigned int at;

	if (waiting_count == WAITING)
		take_oldest(parts, j);
	at = (waiting_first + waiting_count++) % WAITING;
	waiting[at].from_ns = from_ns;
	waiting[at].woke_ns = woke_ns;
}

void parts_take(struct parts *parts, bool last, struct json *j)
{
	int64_t settled_ns = clock_now_ns(CLOCK_MONOTONIC) - SETTLE_NS;

	if (last)
		clock_pause_ns(SETTLE_NS);
	take_events();
	while (waiting_count && (last || waiting[waiting_first % WAITING].woke_ns <= settled_ns))
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
	json_int(j, "told_apart", parts->matched);
	json_int(j, "not_told_apart", parts->unmatched);
	stream_result_end(j);
	if (parts->interrupt == TRACE_NO_INTERRUPT)
		stream_mark(
			j, "no-interrupt", SEVERITY_NOTE, -1,
			"this path has no interrupt, so there is neither interrupt latency nor service time: the master itself wakes the slave");
	if (parts->unmatched * 5 > parts->matched)
		stream_mark(
			j, "parts-missing", SEVERITY_DOUBTFUL, -1,
			"of %lld responses %lld could not be taken apart, because the kernel did not trace each switch to the slave (some kernels leave out those from an idle CPU): the parts are those of the others",
			(long long)parts->matched + parts->unmatched, (long long)parts->unmatched);
	if (trace_dropped())
		stream_mark(j, "trace-dropped", SEVERITY_NOTE, -1,
			    "the kernel dropped trace events: %lld responses could not be taken apart",
			    (long long)parts->unmatched);
}
