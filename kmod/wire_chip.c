// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire as a Linux GPIO chip. An edge raises the input's interrupt on the CPU of the
 * interrupt's affinity: with irq_work if this is the CPU of the edge, otherwise with an
 * inter-processor interrupt.
 */
#include <linux/gpio/driver.h>
#include <linux/irq_work.h>
#include <linux/irqdomain.h>
#include <linux/module.h>
#include <linux/pinctrl/pinconf-generic.h>
#include <linux/smp.h>

#include "compat.h"
#include "wire.h"

#define NAME_SIZE 24

static struct {
	struct gpio_chip chip;
	const char *name[WIRE_LINES_MAX];
	char names[WIRE_LINES_MAX][NAME_SIZE];
	struct pin {
		int cpu;
		struct irq_work work;
		call_single_data_t call;
	} pin[WIRE_LINES_MAX];
} front;

void wire_front_handle(struct line *line)
{
	generic_handle_domain_irq(front.chip.irq.domain, line->offset);
}

static void work_interrupt(struct irq_work *work)
{
	const struct pin *pin = container_of(work, struct pin, work);

	wire_interrupt(&wire_line[pin - front.pin]);
}

static void call_interrupt(void *data)
{
	struct pin *pin = data;

	/*
	 * A polling idle CPU runs this function in its idle task without an interrupt, but the
	 * handlers need one.
	 */
	if (in_hardirq())
		wire_interrupt(&wire_line[pin - front.pin]);
	else
		irq_work_queue(&pin->work);
}

void wire_front_raise(struct line *line)
{
	struct pin *pin = &front.pin[line->offset];
	int cpu = READ_ONCE(pin->cpu);

	/* If that CPU went offline, raise the interrupt on this one. */
	if (cpu == smp_processor_id() || smp_call_function_single_async(cpu, &pin->call))
		irq_work_queue(&pin->work);
}

static int chip_get_direction(struct gpio_chip *chip, unsigned int offset)
{
	return READ_ONCE(wire_line[offset].output) ? GPIO_LINE_DIRECTION_OUT
						   : GPIO_LINE_DIRECTION_IN;
}

static int chip_direction_input(struct gpio_chip *chip, unsigned int offset)
{
	unsigned long flags = wire_lock();

	wire_make_input(&wire_line[offset]);
	wire_unlock_raise(&wire_line[offset], flags);
	return 0;
}

static int chip_direction_output(struct gpio_chip *chip, unsigned int offset, int value)
{
	unsigned long flags = wire_lock();

	wire_make_output(&wire_line[offset], value);
	wire_unlock_raise(&wire_line[offset], flags);
	return 0;
}

static int chip_get(struct gpio_chip *chip, unsigned int offset)
{
	unsigned long flags = wire_lock();
	bool level = wire_level(&wire_line[offset]);

	wire_unlock(flags);
	return level;
}

static RTGAUGE_SET_RESULT chip_set(struct gpio_chip *chip, unsigned int offset, int value)
{
	unsigned long flags = wire_lock();

	wire_put(&wire_line[offset], value);
	wire_unlock_raise(&wire_line[offset], flags);
	return RTGAUGE_SET_DONE;
}

static int chip_set_config(struct gpio_chip *chip, unsigned int offset, unsigned long config)
{
	enum pin_config_param what = pinconf_to_config_param(config);
	unsigned long flags;

	switch (what) {
	case PIN_CONFIG_BIAS_PULL_UP:
	case PIN_CONFIG_BIAS_PULL_DOWN:
	case PIN_CONFIG_BIAS_DISABLE:
		break;
	default:
		return -ENOTSUPP;
	}
	flags = wire_lock();
	wire_pull(&wire_line[offset], what == PIN_CONFIG_BIAS_PULL_UP);
	wire_unlock_raise(&wire_line[offset], flags);
	return 0;
}

static struct line *line_of(struct irq_data *data)
{
	return &wire_line[irqd_to_hwirq(data)];
}

static void set_unmasked(struct irq_data *data, bool unmasked)
{
	unsigned long flags = wire_lock();

	line_of(data)->unmasked = unmasked;
	wire_unlock(flags);
}

static void irq_mask(struct irq_data *data)
{
	set_unmasked(data, false);
	gpiochip_disable_irq(&front.chip, irqd_to_hwirq(data));
}

static void irq_unmask(struct irq_data *data)
{
	gpiochip_enable_irq(&front.chip, irqd_to_hwirq(data));
	set_unmasked(data, true);
}

static void irq_ack(struct irq_data *data)
{
	/* wire_interrupt() has already acknowledged it. */
}

static int irq_set_type(struct irq_data *data, unsigned int type)
{
	unsigned long flags;

	if (type & ~IRQ_TYPE_EDGE_BOTH)
		return -EINVAL;
	flags = wire_lock();
	line_of(data)->type = type;
	wire_unlock(flags);
	return 0;
}

static int irq_move(struct irq_data *data, const struct cpumask *wanted, bool force)
{
	int cpu = force ? cpumask_first(wanted) : cpumask_any_and(wanted, cpu_online_mask);

	if (cpu >= nr_cpu_ids)
		return -EINVAL;
	WRITE_ONCE(front.pin[irqd_to_hwirq(data)].cpu, cpu);
	irq_data_update_effective_affinity(data, cpumask_of(cpu));
	return IRQ_SET_MASK_OK;
}

static int irq_request_resources(struct irq_data *data)
{
	rtgauge_irq_moves_at_once(data->irq);
	return gpiochip_reqres_irq(&front.chip, irqd_to_hwirq(data));
}

static void irq_release_resources(struct irq_data *data)
{
	gpiochip_relres_irq(&front.chip, irqd_to_hwirq(data));
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

void wire_front_prepare(void)
{
	unsigned int i;

	for (i = 0; i < wire_lines; i++) {
		front.pin[i].work = IRQ_WORK_INIT_HARD(work_interrupt);
		INIT_CSD(&front.pin[i].call, call_interrupt, &front.pin[i]);
		snprintf(front.names[i], NAME_SIZE, "rtgauge-wire-%u", i);
		front.name[i] = front.names[i];
	}
}

int wire_front_add(void)
{
	front.chip = (struct gpio_chip){
		.label = "rtgauge_wire",
		.owner = THIS_MODULE,
		.parent = wire_device.misc.this_device,
		.base = -1,
		.ngpio = wire_lines,
		.names = front.name,
		.get_direction = chip_get_direction,
		.direction_input = chip_direction_input,
		.direction_output = chip_direction_output,
		.get = chip_get,
		.set = chip_set,
		.set_config = chip_set_config,
	};
	gpio_irq_chip_set_chip(&front.chip.irq, &irq_chip);
	front.chip.irq.handler = handle_edge_irq;
	front.chip.irq.default_type = IRQ_TYPE_NONE;
	return gpiochip_add_data(&front.chip, NULL);
}

static void do_nothing(void *unused)
{
}

/* No line is in use now, but interrupts may still be pending. */
static void settle(void)
{
	unsigned int i;

	/*
	 * Calls run in order. After this one, all earlier calls are done or have queued their
	 * irq_work.
	 */
	on_each_cpu(do_nothing, NULL, true);
	for (i = 0; i < wire_lines; i++)
		irq_work_sync(&front.pin[i].work);
}

void wire_front_remove(void)
{
	settle();
	gpiochip_remove(&front.chip);
	settle();
}
