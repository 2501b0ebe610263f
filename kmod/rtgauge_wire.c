// SPDX-License-Identifier: GPL-2.0-only
/*
 * A GPIO chip without hardware: `lines` lines, any two of which can be joined. An input sees the
 * output it is joined to, and an edge raises the input's interrupt on the CPU of that interrupt's
 * affinity: by irq_work if this is the CPU of the edge, otherwise by an inter-processor interrupt.
 * Every edge is time-stamped when it is made and when its interrupt is raised.
 */
#include <linux/gpio/driver.h>
#include <linux/irq.h>
#include <linux/irq_work.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/pinctrl/pinconf-generic.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"

#define LINES_MAX 64
#define NAME_SIZE 20

struct line {
	unsigned int offset;
	struct line *peer;
	bool output;
	bool value;   /* of an output */
	bool pull_up; /* the level of an input that nothing drives */
	bool seen;
	/* The interrupt */
	bool unmasked;
	unsigned int type;
	int cpu;
	struct irq_work work;
	call_single_data_t call;
	bool pending; /* the edge below waits for its interrupt */
	struct rtgauge_sample sample;
	/* Counts */
	u64 edges;
	u64 merged;
	u64 ignored;
};

static unsigned int lines = 8;
module_param(lines, uint, 0444);
MODULE_PARM_DESC(lines, "how many lines the chip has (2 to 64)");

static char *join = "";
module_param(join, charp, 0444);
MODULE_PARM_DESC(join, "lines that are joined from the beginning: 0-1,2-3");

static struct rtgauge_device device;

static struct {
	struct gpio_chip chip;
	raw_spinlock_t lock; /* of all that follows; nests inside an interrupt's own lock */
	struct line line[LINES_MAX];
	const char *name[LINES_MAX];
	char names[LINES_MAX][NAME_SIZE];
	bool recording;
	u64 edges; /* since the recording began */
	u64 kept;
	u64 count; /* of samples, after which the recording ends; 0: never */
} wire;

/* Called with the lock held. */
static void keep(struct rtgauge_sample *sample)
{
	if (!wire.recording || !rtgauge_running(&device))
		return;
	rtgauge_keep(&device, sample);
	wire.kept++;
	if (wire.count && wire.kept >= wire.count)
		rtgauge_end(&device, RTGAUGE_REASON_COUNT);
}

/* In hard-irq context, on the interrupt's CPU. */
static void interrupt(struct line *line)
{
	struct rtgauge_sample sample;
	unsigned long flags;

	raw_spin_lock_irqsave(&wire.lock, flags);
	sample = line->sample;
	/* From here on, the next edge raises its own interrupt. */
	line->pending = false;
	raw_spin_unlock_irqrestore(&wire.lock, flags);

	sample.time_ns[RTGAUGE_WIRE_IN] = ktime_get_ns();
	generic_handle_domain_irq(wire.chip.irq.domain, line->offset);
	sample.time_ns[RTGAUGE_WIRE_HANDLED] = ktime_get_ns();

	raw_spin_lock_irqsave(&wire.lock, flags);
	keep(&sample);
	raw_spin_unlock_irqrestore(&wire.lock, flags);
}

static void work_interrupt(struct irq_work *work)
{
	interrupt(container_of(work, struct line, work));
}

static void call_interrupt(void *data)
{
	struct line *line = data;

	/*
	 * A polling idle CPU runs this function without an interrupt, in its idle task; the
	 * handlers need one.
	 */
	if (in_hardirq())
		interrupt(line);
	else
		irq_work_queue(&line->work);
}

/* Called with the lock held. */
static void raise(struct line *line)
{
	/* If that CPU went offline, raise it on this one. */
	if (line->cpu == smp_processor_id() ||
	    smp_call_function_single_async(line->cpu, &line->call))
		irq_work_queue(&line->work);
}

/* Called with the lock held: records an edge without an interrupt. */
static void keep_without_irq(struct rtgauge_sample *sample, unsigned int why)
{
	sample->flags |= why;
	if (wire.recording)
		WRITE_ONCE(device.missed, device.missed + 1);
	keep(sample);
}

static bool level_of(const struct line *line)
{
	if (line->output)
		return line->value;
	if (line->peer && line->peer->output)
		return line->peer->value;
	return line->pull_up;
}

/* Called with the lock held: the level of a line may have changed at `out_ns`; returns whether. */
static bool update(struct line *line, s64 out_ns)
{
	bool level = level_of(line);
	struct rtgauge_sample sample = {
		.time_ns = {[RTGAUGE_WIRE_OUT] = out_ns},
		.line = line->offset,
		.from = line->peer ? line->peer->offset : RTGAUGE_NO_LINE,
		.flags = level ? RTGAUGE_SAMPLE_HIGH : 0,
	};

	if (level == line->seen || line->output) {
		line->seen = level;
		return false;
	}
	line->seen = level;
	line->edges++;
	sample.number = wire.edges++;
	if (!line->unmasked ||
	    !(line->type & (level ? IRQ_TYPE_EDGE_RISING : IRQ_TYPE_EDGE_FALLING))) {
		line->ignored++;
		keep_without_irq(&sample, RTGAUGE_SAMPLE_NO_IRQ);
	} else if (line->pending) {
		line->merged++;
		keep_without_irq(&sample, RTGAUGE_SAMPLE_MERGED);
	} else {
		line->sample = sample;
		line->pending = true;
		raise(line);
	}
	return true;
}

/* Called with the lock held: the line or its peer has changed. */
static void update_both(struct line *line, s64 now_ns)
{
	update(line, now_ns);
	if (line->peer)
		update(line->peer, now_ns);
}

/* Called with the lock held: sets an output. An edge that no line sees is recorded too. */
static void put_out(struct line *line, bool value)
{
	struct rtgauge_sample sample = {
		.line = RTGAUGE_NO_LINE,
		.from = line->offset,
		.flags = value ? RTGAUGE_SAMPLE_HIGH : 0,
	};
	s64 now_ns;

	if (line->value == value)
		return;
	now_ns = ktime_get_ns();
	line->value = value;
	line->seen = value;
	if (line->peer && update(line->peer, now_ns))
		return;
	sample.number = wire.edges++;
	sample.time_ns[RTGAUGE_WIRE_OUT] = now_ns;
	keep_without_irq(&sample, RTGAUGE_SAMPLE_NO_IRQ);
}

static int chip_get_direction(struct gpio_chip *chip, unsigned int offset)
{
	return READ_ONCE(wire.line[offset].output) ? GPIO_LINE_DIRECTION_OUT
						   : GPIO_LINE_DIRECTION_IN;
}

static int chip_direction_input(struct gpio_chip *chip, unsigned int offset)
{
	struct line *line = &wire.line[offset];
	unsigned long flags;

	raw_spin_lock_irqsave(&wire.lock, flags);
	if (line->output) {
		line->output = false;
		update_both(line, ktime_get_ns());
	}
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return 0;
}

static int chip_direction_output(struct gpio_chip *chip, unsigned int offset, int value)
{
	struct line *line = &wire.line[offset];
	unsigned long flags;

	raw_spin_lock_irqsave(&wire.lock, flags);
	if (line->output) {
		put_out(line, value);
	} else {
		line->output = true;
		line->value = value;
		update_both(line, ktime_get_ns());
	}
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return 0;
}

static int chip_get(struct gpio_chip *chip, unsigned int offset)
{
	unsigned long flags;
	bool level;

	raw_spin_lock_irqsave(&wire.lock, flags);
	level = level_of(&wire.line[offset]);
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return level;
}

static RTGAUGE_SET_RESULT chip_set(struct gpio_chip *chip, unsigned int offset, int value)
{
	struct line *line = &wire.line[offset];
	unsigned long flags;

	raw_spin_lock_irqsave(&wire.lock, flags);
	if (line->output)
		put_out(line, value);
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return RTGAUGE_SET_DONE;
}

static int chip_set_config(struct gpio_chip *chip, unsigned int offset, unsigned long config)
{
	enum pin_config_param what = pinconf_to_config_param(config);
	struct line *line = &wire.line[offset];
	unsigned long flags;

	switch (what) {
	case PIN_CONFIG_BIAS_PULL_UP:
	case PIN_CONFIG_BIAS_PULL_DOWN:
	case PIN_CONFIG_BIAS_DISABLE:
		break;
	default:
		return -ENOTSUPP;
	}
	raw_spin_lock_irqsave(&wire.lock, flags);
	line->pull_up = what == PIN_CONFIG_BIAS_PULL_UP;
	update(line, ktime_get_ns());
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return 0;
}

static struct line *line_of(struct irq_data *data)
{
	return &wire.line[irqd_to_hwirq(data)];
}

static void set_unmasked(struct irq_data *data, bool unmasked)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&wire.lock, flags);
	line_of(data)->unmasked = unmasked;
	raw_spin_unlock_irqrestore(&wire.lock, flags);
}

static void irq_mask(struct irq_data *data)
{
	set_unmasked(data, false);
	gpiochip_disable_irq(&wire.chip, irqd_to_hwirq(data));
}

static void irq_unmask(struct irq_data *data)
{
	gpiochip_enable_irq(&wire.chip, irqd_to_hwirq(data));
	set_unmasked(data, true);
}

static void irq_ack(struct irq_data *data)
{
	/* interrupt() has already acknowledged it. */
}

static int irq_set_type(struct irq_data *data, unsigned int type)
{
	unsigned long flags;

	if (type & ~IRQ_TYPE_EDGE_BOTH)
		return -EINVAL;
	raw_spin_lock_irqsave(&wire.lock, flags);
	line_of(data)->type = type;
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return 0;
}

static int irq_move(struct irq_data *data, const struct cpumask *wanted, bool force)
{
	int cpu = force ? cpumask_first(wanted) : cpumask_any_and(wanted, cpu_online_mask);

	if (cpu >= nr_cpu_ids)
		return -EINVAL;
	WRITE_ONCE(line_of(data)->cpu, cpu);
	irq_data_update_effective_affinity(data, cpumask_of(cpu));
	return IRQ_SET_MASK_OK;
}

static int irq_request_resources(struct irq_data *data)
{
	rtgauge_irq_moves_at_once(data->irq);
	return gpiochip_reqres_irq(&wire.chip, irqd_to_hwirq(data));
}

static void irq_release_resources(struct irq_data *data)
{
	gpiochip_relres_irq(&wire.chip, irqd_to_hwirq(data));
}

static const struct irq_chip irq_chip = {
	.name = "rtgauge_wire",
	.irq_mask = irq_mask,
	.irq_unmask = irq_unmask,
	.irq_ack = irq_ack,
	.irq_set_type = irq_set_type,
	.irq_set_affinity = irq_move,
	.irq_request_resources = irq_request_resources,
	.irq_release_resources = irq_release_resources,
	.flags = IRQCHIP_IMMUTABLE,
};

static int ends_join(unsigned int a, unsigned int b)
{
	unsigned long flags;
	int error = 0;

	if (a >= lines || b >= lines || a == b)
		return rtgauge_refuse(&device,
				      "join %u-%u: expected two different lines of 0 to %u", a, b,
				      lines - 1);
	raw_spin_lock_irqsave(&wire.lock, flags);
	if (wire.line[a].peer || wire.line[b].peer) {
		error = -EBUSY;
	} else {
		s64 now_ns = ktime_get_ns();

		wire.line[a].peer = &wire.line[b];
		wire.line[b].peer = &wire.line[a];
		update(&wire.line[a], now_ns);
		update(&wire.line[b], now_ns);
	}
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return error;
}

static int ends_cut(unsigned int a, unsigned int b)
{
	unsigned long flags;
	int error = 0;

	if (a >= lines || b >= lines || a == b)
		return rtgauge_refuse(&device, "cut %u-%u: expected two different lines of 0 to %u",
				      a, b, lines - 1);
	raw_spin_lock_irqsave(&wire.lock, flags);
	if (wire.line[a].peer != &wire.line[b]) {
		error = -ENOENT;
	} else {
		s64 now_ns = ktime_get_ns();

		wire.line[a].peer = NULL;
		wire.line[b].peer = NULL;
		update(&wire.line[a], now_ns);
		update(&wire.line[b], now_ns);
	}
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return error;
}

static int describe(struct rtgauge_wire_line *about)
{
	const struct line *line;
	unsigned long flags;

	if (about->offset >= lines)
		return rtgauge_refuse(&device, "line %u is not in the range 0 to %u", about->offset,
				      lines - 1);
	line = &wire.line[about->offset];
	raw_spin_lock_irqsave(&wire.lock, flags);
	*about = (struct rtgauge_wire_line){
		.offset = line->offset,
		.peer = line->peer ? line->peer->offset : RTGAUGE_NO_LINE,
		.output = line->output,
		.level = level_of(line),
		.edges = line->edges,
		.merged = line->merged,
		.ignored = line->ignored,
	};
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return 0;
}

static long wire_command(struct rtgauge_device *unused, unsigned int command,
			 unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct rtgauge_wire_ends ends;
	struct rtgauge_wire_line about;
	int error;

	switch (command) {
	case RTGAUGE_IOC_JOIN:
	case RTGAUGE_IOC_CUT:
		if (copy_from_user(&ends, user, sizeof(ends)))
			return -EFAULT;
		return command == RTGAUGE_IOC_JOIN ? ends_join(ends.a, ends.b)
						   : ends_cut(ends.a, ends.b);
	case RTGAUGE_IOC_LINE:
		if (copy_from_user(&about, user, sizeof(about)))
			return -EFAULT;
		error = describe(&about);
		if (error)
			return error;
		return copy_to_user(user, &about, sizeof(about)) ? -EFAULT : 0;
	default:
		return -ENOTTY;
	}
}

static int wire_start(struct rtgauge_device *unused, const void *parameters)
{
	const struct rtgauge_wire *wanted = parameters;
	int error = rtgauge_check_abi(&device, wanted->abi, wanted->reserved,
				      ARRAY_SIZE(wanted->reserved));
	unsigned long flags;

	if (error)
		return error;
	if (wanted->reserved0)
		return rtgauge_refuse(&device, "reserved words must be 0");
	raw_spin_lock_irqsave(&wire.lock, flags);
	wire.edges = 0;
	wire.kept = 0;
	wire.count = wanted->count;
	wire.recording = true;
	raw_spin_unlock_irqrestore(&wire.lock, flags);
	return 0;
}

static void wire_stop(struct rtgauge_device *unused)
{
	unsigned long flags;

	/* Samples are written with the lock held: after this, nobody writes to the rings. */
	raw_spin_lock_irqsave(&wire.lock, flags);
	wire.recording = false;
	raw_spin_unlock_irqrestore(&wire.lock, flags);
}

static const struct rtgauge_ops ops = {
	.owner = THIS_MODULE,
	.name = "rtgauge_wire",
	.start_command = RTGAUGE_IOC_START_WIRE,
	.parameters_size = sizeof(struct rtgauge_wire),
	.start = wire_start,
	.stop = wire_stop,
	.command = wire_command,
};

static struct rtgauge_device device = {.ops = &ops};

/* Joins the pairs of the parameter `join`. */
static int join_first(void)
{
	const char *rest = join;

	while (*rest) {
		unsigned int a, b;
		int length = 0;

		if (sscanf(rest, "%u-%u%n", &a, &b, &length) != 2 ||
		    (rest[length] && rest[length] != ','))
			return rtgauge_refuse(
				&device, "join=%s: expected pairs of lines, such as 0-1,2-3", join);
		if (ends_join(a, b))
			return rtgauge_refuse(&device, "join=%s: %u-%u cannot be joined", join, a,
					      b);
		rest += length + (rest[length] == ',');
	}
	return 0;
}

static void lines_make(void)
{
	unsigned int i;

	raw_spin_lock_init(&wire.lock);
	for (i = 0; i < lines; i++) {
		struct line *line = &wire.line[i];

		line->offset = i;
		line->work = IRQ_WORK_INIT_HARD(work_interrupt);
		INIT_CSD(&line->call, call_interrupt, line);
		snprintf(wire.names[i], NAME_SIZE, "rtgauge-wire-%u", i);
		wire.name[i] = wire.names[i];
	}
}

static int chip_add(void)
{
	wire.chip = (struct gpio_chip){
		.label = "rtgauge_wire",
		.owner = THIS_MODULE,
		.parent = device.misc.this_device,
		.base = -1,
		.ngpio = lines,
		.names = wire.name,
		.get_direction = chip_get_direction,
		.direction_input = chip_direction_input,
		.direction_output = chip_direction_output,
		.get = chip_get,
		.set = chip_set,
		.set_config = chip_set_config,
	};
	gpio_irq_chip_set_chip(&wire.chip.irq, &irq_chip);
	wire.chip.irq.handler = handle_edge_irq;
	wire.chip.irq.default_type = IRQ_TYPE_NONE;
	return gpiochip_add_data(&wire.chip, NULL);
}

static void do_nothing(void *unused)
{
}

/* No line is in use any more, but interrupts may still be pending. */
static void lines_settle(void)
{
	unsigned int i;

	/*
	 * Calls run in order: after this one, all earlier ones are done or have queued their
	 * irq_work.
	 */
	on_each_cpu(do_nothing, NULL, true);
	for (i = 0; i < lines; i++)
		irq_work_sync(&wire.line[i].work);
}

static int __init wire_init(void)
{
	int error;

	if (lines < 2 || lines > LINES_MAX)
		return rtgauge_refuse(&device, "lines=%u is not in the range 2 to %u", lines,
				      LINES_MAX);
	lines_make();
	error = join_first();
	if (error)
		return error;
	error = rtgauge_register(&device);
	if (error)
		return error;
	error = chip_add();
	if (error)
		rtgauge_unregister(&device);
	return error;
}
module_init(wire_init);

static void __exit wire_exit(void)
{
	lines_settle();
	gpiochip_remove(&wire.chip);
	lines_settle();
	rtgauge_unregister(&device);
}
module_exit(wire_exit);

MODULE_LICENSE("GPL");
MODULE_AUTHOR("The rtgauge developers");
MODULE_DESCRIPTION("rtgauge: a GPIO chip whose lines are joined, and the time of every edge");
MODULE_INFO(rtgauge_abi, RTGAUGE_ABI_TEXT);
