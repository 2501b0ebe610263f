// SPDX-License-Identifier: MIT
#include "ext/signal/engine/periodic/kernel_toggler.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/stream.h"
#include "harness/harness.h"
#include "rt/runtime.h"

int kernel_toggler_open(struct kernel_toggler *task, const struct path_kernel_end *end, int cpu)
{
	int status = kmod_open(&task->device, RUNTIME_MODULE("rtgauge_periodic"));

	if (status)
		return status;
	task->parameters = (struct rtgauge_periodic){
		.abi = RTGAUGE_KMOD_ABI,
		.context = (uint32_t)role_options.context,
		.cpu = cpu,
		.priority = role_options.context == RTGAUGE_CONTEXT_THREAD
				    ? (uint32_t)harness_options.priority
				    : 0,
		.out = end->out,
	};
	task->steps = memory_get(KERNEL_STEPS * sizeof(*task->steps));
	if (!task->steps)
		return harness_no_memory();
	for (int i = 0; i < KERNEL_STEPS; i++) {
		task->steps[i].metric = "latency";
		task->steps[i].cpu = cpu;
		task->steps[i].labels[0] = (struct label){"segment", kernel_step_names[i]};
		if (RUNTIME_FIRES_EARLY && !series_take_early(&task->steps[i]))
			return harness_no_memory();
	}
	return 0;
}

int kernel_toggler_start(struct kernel_toggler *task, const struct series *grid)
{
	int status;

	task->parameters.period_ns = (uint64_t)grid->interval_ns;
	task->parameters.start_ns = grid->start_ns;
	task->parameters.count = grid->total_count == INT64_MAX ? 0 : (uint64_t)grid->total_count;
	status = kmod_start(&task->device, RTGAUGE_IOC_START_PERIODIC, &task->parameters);
	task->started = !status;
	return status;
}

static void feed_steps(struct kernel_toggler *task, const struct rtgauge_sample *sample, struct json *j)
{
	const int64_t *at = (const int64_t *)sample->time_ns;
	int64_t release_ns = at[RTGAUGE_PERIODIC_EXPECTED], irq_ns = at[RTGAUGE_PERIODIC_IRQ];
	int64_t thread_ns = at[RTGAUGE_PERIODIC_THREAD];
	int64_t entry_ns = thread_ns ? thread_ns : irq_ns;

	if (irq_ns)
		series_feed_timed(&task->steps[STEP_INTERRUPT], release_ns, irq_ns - release_ns, j);
	else /* the runtime's timers can only wake threads */
		irq_ns = release_ns;
	if (thread_ns)
		series_feed_timed(&task->steps[STEP_THREAD], release_ns, thread_ns - irq_ns, j);
	series_feed_timed(&task->steps[STEP_WORK], release_ns, at[RTGAUGE_PERIODIC_DONE] - entry_ns, j);
}

bool kernel_toggler_take(struct kernel_toggler *task, struct edges *edges, struct json *j)
{
	const struct rtgauge_sample *sample;

	task->over = kmod_look(&task->device);
	while ((sample = kmod_next(&task->device))) {
		/* Lost samples leave a gap that no latency explains. It is unknown how many edges the gap
		 * has, and which edge is which from then on. */
		if ((int64_t)sample->number > edges->position) {
			edges->both = false;
			task->edges++;
		}
		task->edges++;
		feed_steps(task, sample, j);
		edges_feed_toggle(edges,
				  &(struct toggle){(int64_t)sample->number, task->edges,
						   sample->time_ns[RTGAUGE_PERIODIC_DONE]},
				  j);
	}
	return !task->over;
}

void kernel_toggler_stop(struct kernel_toggler *task)
{
	if (task->started)
		kmod_stop(&task->device);
	if (!kmod_status(&task->device, &task->status))
		task->status = (struct rtgauge_status){0};
}

void kernel_toggler_conclude(const struct kernel_toggler *task, struct json *j)
{
	stream_result(j, "kernel-module");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_str(j, "module", task->device.name);
	json_int(j, "abi", RTGAUGE_KMOD_ABI);
	json_uint(j, "samples", task->status.samples);
	json_uint(j, "lost", task->status.lost);
	stream_result_end(j);
	if (task->status.reason == RTGAUGE_REASON_OVERLOAD)
		stream_mark(
			j, "overload", SEVERITY_INVALID, 0,
			"the CPU could not keep up with this period, so the kernel module ended the task to "
			"keep the machine from locking up; give a longer --period");
}
