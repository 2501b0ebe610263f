// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire on Xenomai's Cobalt core: each line is a device /dev/rtdm/rtgauge_wire/gpioN with the
 * interface of Xenomai's own GPIO drivers (rtdm/gpio.h), whose read and write stay in primary
 * mode; tasks in the kernel take lines by wire_rtdm.h. It needs no GPIO library of Linux.
 *
 * An edge injects an interrupt into Dovetail's pipeline on the CPU of the edge. Cobalt takes it
 * like a device's, before Linux, whatever Linux does.
 */
#include <linux/irq_pipeline.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <rtdm/driver.h>
#include <rtdm/gpio.h>

#include "compat.h"
#include "wire.h"
#include "wire_rtdm.h"

#define EDGES 64

struct pin {
	struct rtdm_device device;
	struct line *line;
	unsigned long taken; /* bit 0 */
	bool has_direction;
	bool stamped;
	void (*handler)(void); /* of a task in the kernel */
	/* Edges that were not read yet. If there are some, the event is set. nklock protects all
	 * of this. */
	rtdm_event_t event;
	struct edge {
		s64 time_ns;
		bool level;
	} edge[EDGES];
	u64 arrived, read;
};

static char label[] = WIRE_CHIP "/gpio%d";

static struct {
	struct rtdm_driver driver;
	struct class *class;
	struct pin pin[WIRE_LINES_MAX];
	unsigned int added;
	/* Lines whose interrupt was injected on this CPU. */
	unsigned int irq;
	unsigned long __percpu *due;
} front;

static struct pin *pin_of(struct rtdm_fd *fd)
{
	return container_of(rtdm_fd_device(fd), struct pin, device);
}

/* If nobody reads, the oldest edge is lost. */
static void keep_edge(struct pin *pin, bool level)
{
	s64 now_ns = rtdm_clock_read_monotonic();
	spl_t flags;

	cobalt_atomic_enter(flags);
	if (pin->arrived - pin->read == EDGES)
		pin->read++;
	pin->edge[pin->arrived++ % EDGES] = (struct edge){now_ns, level};
	rtdm_event_signal(&pin->event);
	cobalt_atomic_leave(flags);
}

/* Takes an edge. Returns false if there is none. */
static bool take_edge(struct pin *pin, struct edge *edge)
{
	spl_t flags;
	bool any;

	cobalt_atomic_enter(flags);
	any = pin->arrived != pin->read;
	if (any)
		*edge = pin->edge[pin->read++ % EDGES];
	/* The wait has already cleared it. */
	if (pin->arrived == pin->read)
		rtdm_event_clear(&pin->event);
	else
		rtdm_event_signal(&pin->event);
	cobalt_atomic_leave(flags);
	return any;
}

static void forget_edges(struct pin *pin)
{
	spl_t flags;

	cobalt_atomic_enter(flags);
	pin->read = pin->arrived;
	rtdm_event_clear(&pin->event);
	cobalt_atomic_leave(flags);
}

/* Called in hard-irq context, out of band. */
void wire_front_handle(struct line *line)
{
	struct pin *pin = &front.pin[line->offset];

	if (pin->handler) {
		pin->handler();
		return;
	}
	keep_edge(pin, line->sample.flags & RTGAUGE_SAMPLE_HIGH);
}

static irqreturn_t injected(int number, void *due)
{
	unsigned int i;

	for (i = 0; i < wire_lines; i++) {
		if (test_and_clear_bit(i, due))
			wire_interrupt(&wire_line[i]);
	}
	return IRQ_HANDLED;
}

void wire_front_raise(struct line *line)
{
	/*
	 * In one of Cobalt's handlers, of a timer or another interrupt, an injected interrupt
	 * would wait until the handler is over and the scheduler has looked. Nobody would look
	 * again.
	 */
	if (running_oob() && oob_irqs_disabled()) {
		wire_interrupt(line);
		return;
	}
	set_bit(line->offset, this_cpu_ptr(front.due));
	irq_inject_pipeline(front.irq);
}

static void set_interrupt(struct pin *pin, unsigned int type)
{
	unsigned long flags = wire_lock();

	pin->line->type = type;
	pin->line->unmasked = type != 0;
	wire_unlock(flags);
}

static int set_direction(struct pin *pin, bool output, bool value)
{
	unsigned long flags = wire_lock();

	if (output)
		wire_make_output(pin->line, value);
	else
		wire_make_input(pin->line);
	wire_unlock_raise(pin->line, flags);
	pin->has_direction = true;
	return 0;
}

static int take(struct pin *pin)
{
	if (test_and_set_bit(0, &pin->taken))
		return -EBUSY;
	pin->has_direction = false;
	pin->stamped = false;
	return 0;
}

static void nothing(void *unused)
{
}

/* Called by Linux. When this returns, no handler of the line runs. */
static void silence(struct pin *pin)
{
	set_interrupt(pin, 0);
	/* Handlers run with interrupts off, so after every CPU has answered this, none runs. */
	on_each_cpu(nothing, NULL, true);
	WRITE_ONCE(pin->handler, NULL);
}

static void give(struct pin *pin)
{
	silence(pin);
	set_direction(pin, false, 0);
	clear_bit_unlock(0, &pin->taken);
}

static int pin_open(struct rtdm_fd *fd, int flags)
{
	struct pin *pin = pin_of(fd);
	int error = take(pin);

	if (!error)
		forget_edges(pin);
	return error;
}

static void pin_close(struct rtdm_fd *fd)
{
	give(pin_of(fd));
}

static int trigger_set(struct pin *pin, int trigger)
{
	unsigned int type = 0;

	if (trigger & ~(GPIO_TRIGGER_EDGE_RISING | GPIO_TRIGGER_EDGE_FALLING))
		return -EINVAL;
	if (trigger & GPIO_TRIGGER_EDGE_RISING)
		type |= IRQ_TYPE_EDGE_RISING;
	if (trigger & GPIO_TRIGGER_EDGE_FALLING)
		type |= IRQ_TYPE_EDGE_FALLING;
	set_direction(pin, false, 0);
	forget_edges(pin);
	set_interrupt(pin, type);
	return 0;
}

static int pin_ioctl(struct rtdm_fd *fd, unsigned int request, void __user *argument)
{
	struct pin *pin = pin_of(fd);
	int value = 0, error;

	switch (request) {
	case GPIO_RTIOC_DIR_OUT:
	case GPIO_RTIOC_IRQEN:
	case GPIO_RTIOC_TS_MONO:
		error = rtdm_safe_copy_from_user(fd, &value, argument, sizeof(value));
		if (error)
			return error;
		break;
	}
	switch (request) {
	case GPIO_RTIOC_DIR_OUT:
		set_interrupt(pin, 0);
		return set_direction(pin, true, value);
	case GPIO_RTIOC_DIR_IN:
		return set_direction(pin, false, 0);
	case GPIO_RTIOC_IRQEN:
		return trigger_set(pin, value);
	case GPIO_RTIOC_IRQDIS:
		set_interrupt(pin, 0);
		return 0;
	case GPIO_RTIOC_REQS:
	case GPIO_RTIOC_RELS:
		return 0; /* an open line is always requested */
	case GPIO_RTIOC_TS_MONO:
		pin->stamped = value;
		return 0;
	default: /* GPIO_RTIOC_TS_REAL too, because all times are on CLOCK_MONOTONIC */
		return -EINVAL;
	}
}

static ssize_t pin_read(struct rtdm_fd *fd, void __user *buffer, size_t room)
{
	struct pin *pin = pin_of(fd);
	struct rtdm_gpio_readout readout = {};
	unsigned long flags;
	int error;

	if (!pin->has_direction)
		return -EAGAIN;
	if (pin->line->output || room < (pin->stamped ? sizeof(readout) : sizeof(readout.value)))
		return -EINVAL;
	if (rtdm_fd_flags(fd) & O_NONBLOCK) {
		flags = wire_lock();
		readout.timestamp = rtdm_clock_read_monotonic();
		readout.value = wire_level(pin->line);
		wire_unlock(flags);
	} else {
		struct edge edge;

		while (!take_edge(pin, &edge)) {
			error = rtdm_event_wait(&pin->event);
			if (error)
				return error;
		}
		readout.timestamp = edge.time_ns;
		readout.value = edge.level;
	}
	if (!pin->stamped)
		return rtdm_safe_copy_to_user(fd, buffer, &readout.value, sizeof(readout.value))
			       ?: sizeof(readout.value);
	return rtdm_safe_copy_to_user(fd, buffer, &readout, sizeof(readout)) ?: sizeof(readout);
}

static ssize_t pin_write(struct rtdm_fd *fd, const void __user *buffer, size_t length)
{
	struct pin *pin = pin_of(fd);
	unsigned long flags;
	int value, error;

	if (length < sizeof(value))
		return -EINVAL;
	if (!pin->has_direction)
		return -EAGAIN;
	if (!pin->line->output)
		return -EINVAL;
	error = rtdm_safe_copy_from_user(fd, &value, buffer, sizeof(value));
	if (error)
		return error;
	flags = wire_lock();
	wire_put(pin->line, value);
	wire_unlock_raise(pin->line, flags);
	return sizeof(value);
}

static int pin_select(struct rtdm_fd *fd, struct xnselector *selector, unsigned int type,
		      unsigned int index)
{
	struct pin *pin = pin_of(fd);

	if (!pin->has_direction)
		return -EAGAIN;
	if (pin->line->output)
		return -EINVAL;
	return rtdm_event_select(&pin->event, selector, type, index);
}

static struct pin *task_take(unsigned int offset, bool output)
{
	struct pin *pin;
	int error;

	if (offset >= wire_lines)
		return ERR_PTR(-EINVAL);
	pin = &front.pin[offset];
	error = take(pin);
	if (error)
		return ERR_PTR(error);
	set_direction(pin, output, 0);
	return pin;
}

static void task_listen(struct pin *pin, void (*handler)(void))
{
	if (!handler) {
		silence(pin);
		return;
	}
	WRITE_ONCE(pin->handler, handler);
	set_interrupt(pin, IRQ_TYPE_EDGE_BOTH);
}

static bool task_level(struct pin *pin)
{
	unsigned long flags = wire_lock();
	bool level = wire_level(pin->line);

	wire_unlock(flags);
	return level;
}

static void task_put(struct pin *pin, bool value)
{
	unsigned long flags = wire_lock();

	wire_put(pin->line, value);
	wire_unlock(flags);
}

static void task_raise(struct pin *pin)
{
	wire_raise_due(pin->line);
}

const struct rtgauge_wire_pins rtgauge_wire_pins = {
	.take = task_take,
	.give = give,
	.listen = task_listen,
	.level = task_level,
	.put = task_put,
	.raise = task_raise,
};
EXPORT_SYMBOL_GPL(rtgauge_wire_pins);

void wire_front_prepare(void)
{
	unsigned int i;

	for (i = 0; i < wire_lines; i++)
		front.pin[i].line = &wire_line[i];
}

static char *device_node(RTGAUGE_CONST_DEVICE struct device *device, umode_t *mode)
{
	return kasprintf(GFP_KERNEL, "rtdm/" WIRE_CHIP "/%s", dev_name(device));
}

static int irq_take(void)
{
	int error = -ENOMEM;

	front.due = alloc_percpu(unsigned long);
	if (!front.due)
		return error;
	front.irq = irq_create_direct_mapping(synthetic_irq_domain);
	if (front.irq)
		error = __request_percpu_irq(front.irq, injected, IRQF_OOB, WIRE_CHIP, front.due);
	if (!error)
		return 0;
	if (front.irq)
		irq_dispose_mapping(front.irq);
	free_percpu(front.due);
	return error;
}

static void irq_give(void)
{
	free_percpu_irq(front.irq, front.due);
	irq_dispose_mapping(front.irq);
	free_percpu(front.due);
}

static void devices_remove(void)
{
	while (front.added) {
		struct pin *pin = &front.pin[--front.added];

		rtdm_dev_unregister(&pin->device);
		rtdm_event_destroy(&pin->event);
	}
	class_destroy(front.class);
}

static int devices_add(void)
{
	front.class = rtgauge_class_create(WIRE_CHIP);
	if (IS_ERR(front.class))
		return PTR_ERR(front.class);
	front.class->devnode = device_node;
	front.driver = (struct rtdm_driver){
		.profile_info =
			RTDM_PROFILE_INFO(rtgauge_wire, RTDM_CLASS_GPIO, RTDM_SUBCLASS_GENERIC, 0),
		.device_flags = RTDM_NAMED_DEVICE | RTDM_FIXED_MINOR,
		.device_count = wire_lines,
	};
	front.driver.ops = (struct rtdm_fd_ops){
		.open = pin_open,
		.close = pin_close,
		.ioctl_nrt = pin_ioctl,
		.read_rt = pin_read,
		.write_rt = pin_write,
		.select = pin_select,
	};
	rtdm_drv_set_sysclass(&front.driver, front.class);
	while (front.added < wire_lines) {
		struct pin *pin = &front.pin[front.added];
		int error;

		rtdm_event_init(&pin->event, 0);
		pin->device.driver = &front.driver;
		pin->device.label = label;
		pin->device.minor = front.added;
		error = rtdm_dev_register(&pin->device);
		if (error) {
			rtdm_event_destroy(&pin->event);
			devices_remove();
			return error;
		}
		front.added++;
	}
	return 0;
}

int wire_front_add(void)
{
	int error = irq_take();

	if (error)
		return error;
	error = devices_add();
	if (error)
		irq_give();
	return error;
}

void wire_front_remove(void)
{
	devices_remove();
	irq_give();
}
