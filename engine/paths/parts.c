// SPDX-License-Identifier: MIT
#include "paths/parts.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stream.h"

#define EVENTS 65536
#define IRQS "/sys/kernel/irq"

static struct trace_event events[EVENTS];
static unsigned int event_count;

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

void parts_choose(struct parts *parts, const struct path_end *slave, bool from_stimulus, int cpu)
{
	static const char *const names[PARTS] = {"interrupt-latency", "service-time", "scheduling-latency",
						 "scheduling-duration"};

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
}

void parts_take(void)
{
	event_count = trace_take(events, event_count, EVENTS);
}

/* The first event of a kind from this time on; 0: there is none up to end_ns. */
static int64_t first(enum trace_kind kind, int64_t from_ns, int64_t end_ns)
{
	for (unsigned int i = 0; i < event_count && events[i].time_ns <= end_ns; i++) {
		if (events[i].kind == kind && events[i].time_ns >= from_ns)
			return events[i].time_ns;
	}
	return 0;
}

static void forget_until(int64_t end_ns)
{
	unsigned int gone = 0;

	while (gone < event_count && events[gone].time_ns <= end_ns)
		gone++;
	memmove(events, events + gone, (event_count - gone) * sizeof(events[0]));
	event_count -= gone;
}

void parts_feed(struct parts *parts, int64_t from_ns, int64_t woke_ns, struct json *j)
{
	int64_t irq_ns =
		parts->interrupt == TRACE_NO_INTERRUPT ? from_ns : first(TRACE_INTERRUPT, from_ns, woke_ns);
	int64_t waking_ns = irq_ns ? first(TRACE_WAKING, irq_ns, woke_ns) : 0;
	int64_t switch_ns = waking_ns ? first(TRACE_SWITCH, waking_ns, woke_ns) : 0;
	const int64_t begin[] = {from_ns, irq_ns, waking_ns, switch_ns};
	const int64_t end[] = {irq_ns, waking_ns, switch_ns, woke_ns};

	forget_until(woke_ns);
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
		stream_mark(j, "no-interrupt", SEVERITY_NOTE, -1,
			    "this path has no interrupt, so there is no interrupt latency and no service "
			    "time to tell: the "
			    "slave is woken by the master itself");
	if (trace_dropped())
		stream_mark(j, "trace-dropped", SEVERITY_NOTE, -1,
			    "the kernel dropped trace events: %" PRId64 " responses could not be taken apart",
			    parts->unmatched);
}
