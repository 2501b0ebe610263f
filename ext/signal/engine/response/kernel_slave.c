// SPDX-License-Identifier: MIT
#include "ext/signal/engine/response/kernel_slave.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/stream.h"
#include "harness/harness.h"
#include "rt/runtime.h"

#define ENTRIES 65536

/* Whether the interrupt goes to the slave's CPU. A co-kernel's wire has it on the CPU of the edge. The
 * interrupts of many chips cannot be moved, so they stay unless a CPU was chosen. */
static bool has_chosen_cpu(bool alone, bool from_wire)
{
	if (alone)
		return true;
	if (RUNTIME_IS_COKERNEL)
		return false;
	return from_wire || role_options.slave_cpu >= 0 || cpuset_count(&harness_options.cpus);
}

int kernel_slave_open(struct kernel_slave *slave, const struct path_kernel_end *end, int cpu, bool from_wire)
{
	enum rtgauge_context context = (enum rtgauge_context)role_options.context;
	bool own_thread = context == RTGAUGE_CONTEXT_THREAD, alone = !end->in.chip[0];
	bool chosen = has_chosen_cpu(alone, from_wire);
	int status = kmod_open(&slave->device, RUNTIME_MODULE("rtgauge_response"));

	if (status)
		return status;
	slave->parameters = (struct rtgauge_response){
		.abi = RTGAUGE_KMOD_ABI,
		.context = context,
		.cpu = own_thread ? cpu : RTGAUGE_ANY_CPU,
		.irq_cpu = chosen ? cpu : RTGAUGE_ANY_CPU,
		.priority = own_thread ? (uint32_t)harness_options.priority : 0,
		.in = end->in,
		.out = end->out,
	};
	slave->cpu = chosen || own_thread ? cpu : -1;
	slave->steps = memory_get(KERNEL_STEPS * sizeof(*slave->steps));
	slave->entries = memory_get(ENTRIES * sizeof(*slave->entries));
	if (!slave->steps || !slave->entries)
		return harness_no_memory();
	slave->known[STEP_INTERRUPT] = from_wire || alone;
	slave->known[STEP_THREAD] = own_thread || context == RTGAUGE_CONTEXT_IRQ_THREAD;
	slave->known[STEP_WORK] = true;
	for (int i = 0; i < KERNEL_STEPS; i++) {
		slave->steps[i].metric = "response";
		slave->steps[i].cpu = slave->cpu;
		slave->steps[i].labels[0] = (struct label){"segment", kernel_step_names[i]};
	}
	return 0;
}

bool kernel_slave_stimulates(const struct kernel_slave *slave)
{
	return !slave->parameters.in.chip[0];
}

int kernel_slave_start(struct kernel_slave *slave)
{
	int status = kmod_start(&slave->device, RTGAUGE_IOC_START_RESPONSE, &slave->parameters);

	slave->started = !status;
	return status;
}

/* From the module's own stimulus. A gap in the numbers means stimuli that were not answered before the
 * next one. A lost sample counts too, and is marked (samples-lost). */
static void feed_own(struct kernel_slave *slave, const struct rtgauge_sample *sample, struct series *answers,
		     struct json *j)
{
	int64_t stimulus_ns = sample->time_ns[RTGAUGE_RESPONSE_STIMULUS];

	for (; slave->next < sample->number; slave->next++)
		series_miss_timed(answers, slave->last_ns, (int64_t)slave->parameters.interval_min_ns, j);
	slave->next = sample->number + 1;
	slave->last_ns = stimulus_ns;
	series_feed_timed(&slave->steps[STEP_INTERRUPT], stimulus_ns,
			  sample->time_ns[RTGAUGE_RESPONSE_IRQ] - stimulus_ns, j);
	series_feed_timed(answers, stimulus_ns, sample->time_ns[RTGAUGE_RESPONSE_DONE] - stimulus_ns, j);
}

void kernel_slave_take(struct kernel_slave *slave, struct series *answers, struct json *j)
{
	const struct rtgauge_sample *sample;

	kmod_look(&slave->device);
	while ((sample = kmod_next(&slave->device))) {
		int64_t irq_ns = sample->time_ns[RTGAUGE_RESPONSE_IRQ];
		int64_t thread_ns = sample->time_ns[RTGAUGE_RESPONSE_THREAD];
		int64_t done_ns = sample->time_ns[RTGAUGE_RESPONSE_DONE];
		int64_t entry_ns = irq_ns ? irq_ns : thread_ns;

		if (irq_ns && thread_ns)
			series_feed_timed(&slave->steps[STEP_THREAD], irq_ns, thread_ns - irq_ns, j);
		series_feed_timed(&slave->steps[STEP_WORK], entry_ns,
				  done_ns - (thread_ns ? thread_ns : irq_ns), j);
		if (answers && kernel_slave_stimulates(slave))
			feed_own(slave, sample, answers, j);
		else if (answers)
			series_feed_timed(answers, entry_ns, done_ns - entry_ns, j);
		if (slave->entries_put - slave->entries_taken == ENTRIES)
			slave->entries_taken++;
		slave->entries[slave->entries_put++ % ENTRIES] = entry_ns;
	}
}

int64_t kernel_slave_entry(struct kernel_slave *slave, int64_t after_ns, int64_t until_ns)
{
	while (slave->entries_taken != slave->entries_put) {
		int64_t time_ns = slave->entries[slave->entries_taken % ENTRIES];

		if (time_ns > until_ns)
			break;
		slave->entries_taken++;
		if (time_ns > after_ns)
			return time_ns;
	}
	return 0;
}

void kernel_slave_stop(struct kernel_slave *slave)
{
	if (slave->started)
		kmod_stop(&slave->device);
	if (!kmod_status(&slave->device, &slave->status))
		slave->status = (struct rtgauge_status){0};
}

void kernel_slave_conclude(const struct kernel_slave *slave, struct json *j)
{
	stream_result(j, "kernel-module");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_str(j, "module", slave->device.name);
	json_int(j, "abi", RTGAUGE_KMOD_ABI);
	json_uint(j, "samples", slave->status.samples);
	json_uint(j, "missed", slave->status.missed);
	json_uint(j, "lost", slave->status.lost);
	stream_result_end(j);
	if (slave->status.lost)
		stream_mark(j, "samples-lost", SEVERITY_INVALID, (int)slave->steps[STEP_WORK].id,
			    "the kernel module measured %llu samples that were lost, so the parts of the "
			    "response leave them out",
			    (unsigned long long)slave->status.lost);
}
