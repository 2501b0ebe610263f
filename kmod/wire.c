// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines without hardware, any two of which can be joined. An input sees the output to which it
 * is joined, and an edge raises the input's interrupt. Every edge is time-stamped when it is
 * made, and when its interrupt is raised. A front (wire.h) makes the lines usable, for users and
 * for tasks in the kernel.
 */
#include <linux/irq.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"
#include "rt.h"
#include "wire.h"

unsigned int wire_lines = 8;
module_param_named(lines, wire_lines, uint, 0444);
MODULE_PARM_DESC(lines, "how many lines there are (2 to 64)");

static char *join = "";
module_param(join, charp, 0444);
MODULE_PARM_DESC(join, "lines that are joined from the beginning: 0-1,2-3");

struct line wire_line[WIRE_LINES_MAX];

static struct {
	/* Protects everything below and the lines. It nests inside an interrupt's own lock. */
	RTGAUGE_SPINLOCK lock;
	bool recording;
	u64 edges; /* since the recording began */
	u64 kept;
	u64 count; /* number of samples after which the recording ends; 0: never */
} wire;

unsigned long wire_lock(void)
{
	unsigned long flags = rtgauge_irqs_off();

	raw_spin_lock(&wire.lock);
	__release(&wire.lock); /* for sparse: the caller unlocks */
	return flags;
}

void wire_unlock(unsigned long flags)
{
	__acquire(&wire.lock);
	raw_spin_unlock(&wire.lock);
	rtgauge_irqs_back(flags);
}

/* Called with the lock held. Returns whether the edge's interrupt still has to be raised, which
 * the caller then does. */
static bool take_due(struct line *line)
{
	bool due = line && line->due;

	if (due)
		line->due = false;
	return due;
}

void wire_unlock_raise(struct line *line, unsigned long flags)
{
	struct line *peer = line->peer;
	bool own = take_due(line), peers = take_due(peer);

	/* The handlers run without the lock. Nothing comes in between. */
	__acquire(&wire.lock);
	raw_spin_unlock(&wire.lock);
	if (own)
		wire_front_raise(line);
	if (peers)
		wire_front_raise(peer);
	rtgauge_irqs_back(flags);
}

void wire_raise_due(struct line *line)
{
	wire_unlock_raise(line, wire_lock());
}

/* Called with the lock held. */
static void keep(struct rtgauge_sample *sample)
{
	if (!wire.recording || !rtgauge_running(&wire_device))
		return;
	rtgauge_keep(&wire_device, sample);
	wire.kept++;
	if (wire.count && wire.kept >= wire.count)
		rtgauge_end(&wire_device, RTGAUGE_REASON_COUNT);
}

void wire_interrupt(struct line *line)
{
	struct rtgauge_sample sample;
	unsigned long flags = wire_lock();

	sample = line->sample;
	/* From here on, the next edge raises an interrupt of its own. */
	line->pending = false;
	wire_unlock(flags);

	sample.time_ns[RTGAUGE_WIRE_IN] = rt_now_ns();
	wire_front_handle(line);
	sample.time_ns[RTGAUGE_WIRE_HANDLED] = rt_now_ns();

	flags = wire_lock();
	keep(&sample);
	wire_unlock(flags);
}

/* Called with the lock held. Records an edge without an interrupt. */
static void keep_without_irq(struct rtgauge_sample *sample, unsigned int why)
{
	sample->flags |= why;
	if (wire.recording)
		WRITE_ONCE(wire_device.missed, wire_device.missed + 1);
	keep(sample);
}

bool wire_level(const struct line *line)
{
	if (line->output)
		return line->value;
	if (line->peer && line->peer->output)
		return line->peer->value;
	return line->pull_up;
}

/* Called with the lock held. A line's level may have changed at `out_ns`. Returns whether it
   did. */
static bool update(struct line *line, s64 out_ns)
{
	bool level = wire_level(line);
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
		line->due = true;
	}
	return true;
}

/* Called with the lock held. The line or its peer has changed. */
static void update_both(struct line *line, s64 now_ns)
{
	update(line, now_ns);
	if (line->peer)
		update(line->peer, now_ns);
}

/* An edge that no line sees is also recorded. */
void wire_put(struct line *line, bool value)
{
	struct rtgauge_sample sample = {
		.line = RTGAUGE_NO_LINE,
		.from = line->offset,
		.flags = value ? RTGAUGE_SAMPLE_HIGH : 0,
	};
	s64 now_ns;

	if (!line->output || line->value == value)
		return;
	now_ns = rt_now_ns();
	line->value = value;
	line->seen = value;
	if (line->peer && update(line->peer, now_ns))
		return;
	sample.number = wire.edges++;
	sample.time_ns[RTGAUGE_WIRE_OUT] = now_ns;
	keep_without_irq(&sample, RTGAUGE_SAMPLE_NO_IRQ);
}

void wire_make_input(struct line *line)
{
	if (!line->output)
		return;
	line->output = false;
	update_both(line, rt_now_ns());
}

void wire_make_output(struct line *line, bool value)
{
	if (line->output) {
		wire_put(line, value);
		return;
	}
	line->output = true;
	line->value = value;
	update_both(line, rt_now_ns());
}

void wire_pull(struct line *line, bool up)
{
	line->pull_up = up;
	update(line, rt_now_ns());
}

static int ends_join(unsigned int a, unsigned int b)
{
	unsigned long flags;
	int error = 0;

	if (a >= wire_lines || b >= wire_lines || a == b)
		return rtgauge_refuse(&wire_device,
				      "join %u-%u: expected two different lines of 0 to %u", a, b,
				      wire_lines - 1);
	flags = wire_lock();
	if (wire_line[a].peer || wire_line[b].peer) {
		error = -EBUSY;
	} else {
		s64 now_ns = rt_now_ns();

		wire_line[a].peer = &wire_line[b];
		wire_line[b].peer = &wire_line[a];
		update(&wire_line[a], now_ns);
		update(&wire_line[b], now_ns);
	}
	wire_unlock_raise(&wire_line[a], flags);
	return error;
}

static int ends_cut(unsigned int a, unsigned int b)
{
	struct line *other = NULL;
	unsigned long flags;
	int error = 0;

	if (a >= wire_lines || b >= wire_lines || a == b)
		return rtgauge_refuse(&wire_device,
				      "cut %u-%u: expected two different lines of 0 to %u", a, b,
				      wire_lines - 1);
	flags = wire_lock();
	if (wire_line[a].peer != &wire_line[b]) {
		error = -ENOENT;
	} else {
		s64 now_ns = rt_now_ns();

		wire_line[a].peer = NULL;
		wire_line[b].peer = NULL;
		update(&wire_line[a], now_ns);
		update(&wire_line[b], now_ns);
		/* The two lines are no longer peers. */
		other = &wire_line[b];
	}
	wire_unlock_raise(&wire_line[a], flags);
	if (other)
		wire_raise_due(other);
	return error;
}

static int describe(struct rtgauge_wire_line *about)
{
	const struct line *line;
	unsigned long flags;

	if (about->offset >= wire_lines)
		return rtgauge_refuse(&wire_device, "line %u is not in the range 0 to %u",
				      about->offset, wire_lines - 1);
	line = &wire_line[about->offset];
	flags = wire_lock();
	*about = (struct rtgauge_wire_line){
		.offset = line->offset,
		.peer = line->peer ? line->peer->offset : RTGAUGE_NO_LINE,
		.output = line->output,
		.level = wire_level(line),
		.edges = line->edges,
		.merged = line->merged,
		.ignored = line->ignored,
	};
	wire_unlock(flags);
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
	int error = rtgauge_check_abi(&wire_device, wanted->abi, wanted->reserved,
				      ARRAY_SIZE(wanted->reserved));
	unsigned long flags;

	if (error)
		return error;
	if (wanted->reserved0)
		return rtgauge_refuse(&wire_device, "reserved words must be 0");
	flags = wire_lock();
	wire.edges = 0;
	wire.kept = 0;
	wire.count = wanted->count;
	wire.recording = true;
	wire_unlock(flags);
	return 0;
}

static void wire_stop(struct rtgauge_device *unused)
{
	unsigned long flags;

	/* Samples are written with the lock held, so after this nobody writes to the rings. */
	flags = wire_lock();
	wire.recording = false;
	wire_unlock(flags);
}

static const struct rtgauge_ops ops = {
	.owner = THIS_MODULE,
	.name = "rtgauge_wire" RT_SUFFIX,
	.start_command = RTGAUGE_IOC_START_WIRE,
	.parameters_size = sizeof(struct rtgauge_wire),
	.start = wire_start,
	.stop = wire_stop,
	.command = wire_command,
};

struct rtgauge_device wire_device = {.ops = &ops};

/* Joins the pairs of the parameter `join`. */
static int join_first(void)
{
	const char *rest = join;

	while (*rest) {
		unsigned int a, b;
		int length = 0, error;

		if (sscanf(rest, "%u-%u%n", &a, &b, &length) != 2 ||
		    (rest[length] && rest[length] != ','))
			return rtgauge_refuse(&wire_device,
					      "join=%s: expected pairs of lines, such as 0-1,2-3",
					      join);
		error = ends_join(a, b);
		if (error == -EBUSY)
			return rtgauge_refuse(&wire_device, "join=%s: %u or %u is joined already",
					      join, a, b);
		if (error)
			return error;
		rest += length + (rest[length] == ',');
	}
	return 0;
}

static void lines_make(void)
{
	unsigned int i;

	raw_spin_lock_init(&wire.lock);
	for (i = 0; i < wire_lines; i++)
		wire_line[i].offset = i;
	wire_front_prepare();
}

static int __init wire_init(void)
{
	int error;

	if (wire_lines < 2 || wire_lines > WIRE_LINES_MAX)
		return rtgauge_refuse(&wire_device, "lines=%u is not in the range 2 to %u",
				      wire_lines, WIRE_LINES_MAX);
	lines_make();
	error = join_first();
	if (error)
		return error;
	/* Nobody can open the device before its lines exist. */
	set_bit(0, &wire_device.opened);
	error = rtgauge_register(&wire_device);
	if (error)
		return error;
	error = wire_front_add();
	if (error)
		rtgauge_unregister(&wire_device);
	clear_bit_unlock(0, &wire_device.opened);
	return error;
}
module_init(wire_init);

static void __exit wire_exit(void)
{
	wire_front_remove();
	rtgauge_unregister(&wire_device);
}
module_exit(wire_exit);

MODULE_LICENSE("GPL");
MODULE_VERSION(RTGAUGE_KMOD_VERSION);
MODULE_AUTHOR("The rtgauge developers");
MODULE_DESCRIPTION("rtgauge: lines that are joined, and the time of every edge");
MODULE_INFO(rtgauge_abi, RTGAUGE_ABI_TEXT);
