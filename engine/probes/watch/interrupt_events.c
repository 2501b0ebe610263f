// SPDX-License-Identifier: MIT
#include "probes/watch/interrupt_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/events.h"

#define EVENTS                                                                                               \
	"irq/irq_handler_exit,irq/irq_handler_entry,irq/softirq_exit,irq/softirq_entry,ipi/ipi_exit,"        \
	"ipi/ipi_entry,irq_vectors/*_exit,irq_vectors/*_entry,nmi/nmi_handler"
#define FLAGS_RESCHEDULE 6 /* NEED_RESCHED, NEED_RESCHED_LAZY (include/linux/trace_events.h) */

static const char *const softirqs[] = {"HI",	   "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
				       "IRQ_POLL", "TASKLET", "SCHED",	"HRTIMER", "RCU"};

bool interrupt_events_enable(struct interrupt_events *events, int instance)
{
	char *names[TRACE_EVENTS_MAX], text[TRACE_TEXT_MAX];
	unsigned int found = trace_events_find(instance, EVENTS, names);
	bool have[2] = {false, false};

	events->count = 0;
	for (unsigned int i = 0; i < found; i++) {
		struct interrupt_event *event = &events->all[events->count];
		bool use = events->count < INTERRUPT_EVENTS_MAX &&
			   trace_event_format(instance, names[i], text) &&
			   trace_event_enable(instance, names[i], true);

		if (use) {
			*event = (struct interrupt_event){0};
			snprintf(event->event, sizeof(event->event), "%s", names[i]);
		}
		free(names[i]);
		if (!use)
			continue;
		event->id = trace_event_id(text);
		if (!trace_find_field(text, "irq", &event->number))
			trace_find_field(text, "vec", &event->number);
		trace_find_field(text, "name", &event->action);
		trace_find_field(text, "delta_ns", &event->lasted);
		have[0] |= !strcmp(event->event, "irq/irq_handler_entry");
		have[1] |= !strcmp(event->event, "irq/softirq_entry");
		events->count++;
	}
	return have[0] && have[1];
}

void interrupt_events_disable(const struct interrupt_events *events, int instance)
{
	for (size_t i = 0; i < events->count; i++)
		trace_event_enable(instance, events->all[i].event, false);
}

/* "call_function_entry" is a call function interrupt. */
static void name_vector(const char *event, char room[INTERRUPT_NAME_MAX])
{
	snprintf(room, INTERRUPT_NAME_MAX, "%.*s interrupt", (int)(strrchr(event, '_') - event), event);
	for (char *letter = room; *letter; letter++)
		*letter = *letter == '_' ? ' ' : *letter;
}

/* Sets the name of the interrupt from that of its event: "irq_vectors/local_timer_entry". */
static void set_name(const struct interrupt_event *event, const unsigned char *record, size_t len,
		     struct interrupt *interrupt)
{
	int64_t which = trace_number(record, len, &event->number);
	uint32_t action = (uint32_t)trace_number(record, len, &event->action);
	size_t at = action & 0xffff, size = action >> 16; /* __data_loc */
	const char *name = strchr(event->event, '/') + 1;
	char *room = interrupt->name;

	if (!strncmp(event->event, "nmi/", 4))
		snprintf(room, INTERRUPT_NAME_MAX, "NMI");
	else if (!strncmp(event->event, "ipi/", 4))
		snprintf(room, INTERRUPT_NAME_MAX, "inter-processor interrupt");
	else if (!strncmp(name, "irq_handler", 11))
		snprintf(room, INTERRUPT_NAME_MAX, "irq %lld %.*s", (long long)which,
			 size && at < len ? (int)(len - at < size ? len - at : size) : 0,
			 (const char *)record + at);
	else if (!strncmp(name, "softirq", 7))
		snprintf(room, INTERRUPT_NAME_MAX, "softirq %s",
			 which >= 0 && which < (int64_t)(sizeof(softirqs) / sizeof(softirqs[0]))
				 ? softirqs[which]
				 : "");
	else if (!strncmp(name, "local_timer", 11))
		snprintf(room, INTERRUPT_NAME_MAX, "timer interrupt");
	else
		name_vector(name, room);
}

bool interrupt_events_read(const struct interrupt_events *events, unsigned int id,
			   const unsigned char *record, size_t len, unsigned int flags,
			   struct interrupt *interrupt)
{
	const struct interrupt_event *event = events->all;
	const char *edge;

	while (event < events->all + events->count && event->id != id)
		event++;
	if (event == events->all + events->count)
		return false;
	edge = strrchr(event->event, '_');
	*interrupt = (struct interrupt){
		.begins = strcmp(edge, "_exit") != 0,
		.ends = strcmp(edge, "_entry") != 0,
		.reschedules = flags & FLAGS_RESCHEDULE,
		.lasted_ns = trace_number(record, len, &event->lasted),
	};
	set_name(event, record, len, interrupt);
	return true;
}
