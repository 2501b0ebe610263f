// SPDX-License-Identifier: MIT
/*
 * gpio:CHIP:LINES[:OPTIONS]: lines of a GPIO chip, through the character device, uAPI v2 (linux/gpio.h,
 * Documentation/userspace-api/gpio). An edge toggles an output. The other end waits until its input
 * changes, and gets the kernel's time stamp.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/error.h"
#include "base/options.h"
#include "ext/signal/engine/path/gpio_spec.h"
#include "ext/signal/engine/path/path.h"

#define EVENTS_AT_ONCE 16

struct chip {
	const struct gpio_spec *spec;
	const char *text; /* of --path, for messages */
	int fd;
	unsigned int lines;
	char label[GPIO_MAX_NAME_SIZE];
};

/* A request is an unsigned long in glibc and an int in musl. The kernel accepts both. */
static inline int ask(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument);
}

/* Whether the device is one of the kernel's GPIO driver. Opening another may do something: a watchdog starts
   its countdown to a reboot. */
static bool is_chip(const struct stat *device)
{
	FILE *devices = fopen("/proc/devices", "re");
	char line[128], name[32];
	unsigned int number;
	bool found = false;

	if (!devices)
		return true; /* without /proc, only the ioctl can tell */
	while (!found && fgets(line, sizeof(line), devices) && strncmp(line, "Block", 5))
		found = sscanf(line, "%u %31s", &number, name) == 2 && !strcmp(name, "gpiochip") &&
			number == major(device->st_rdev);
	fclose(devices);
	return found;
}

static int open_chip(struct chip *chip)
{
	char path[GPIO_TEXT + 8];
	struct gpiochip_info info;
	struct stat device;

	snprintf(path, sizeof(path), "%s%.63s", chip->spec->chip[0] == '/' ? "" : "/dev/", chip->spec->chip);
	chip->fd = -1;
	if (!stat(path, &device) && !(S_ISCHR(device.st_mode) && is_chip(&device)))
		return error_line(STATUS_CANNOT_MEASURE, "path",
				  "%s is not a GPIO chip; list them with: ls /dev/gpiochip*", path);
	chip->fd = open(path, O_RDWR | O_CLOEXEC);
	if (chip->fd < 0 && (errno == EACCES || errno == EPERM))
		return error_line(
			STATUS_CANNOT_MEASURE, "permission-gpio",
			"this user may not open %s (%s); run as root, or as a member of the group that owns "
			"it (often gpio)",
			path, strerror(errno));
	if (chip->fd < 0)
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"there is no GPIO chip %s here (%s); see ls /dev/gpiochip*, or use --path loop:eventfd, which needs none",
			path, strerror(errno));
	if (ask(chip->fd, GPIO_GET_CHIPINFO_IOCTL, &info))
		return error_line(STATUS_CANNOT_MEASURE, "path", "%s is not a GPIO chip (%s)", path,
				  strerror(errno));
	chip->lines = info.lines;
	memcpy(chip->label, info.label, sizeof(chip->label));
	return 0;
}

static bool line_info(const struct chip *chip, unsigned int offset, struct gpio_v2_line_info *info)
{
	*info = (struct gpio_v2_line_info){.offset = offset};
	return !ask(chip->fd, GPIO_V2_GET_LINEINFO_IOCTL, info);
}

/* Finds the line's number on the chip. A name means the first line with that name. Returns 0 or the exit
   status. */
static int find_line(const struct chip *chip, const char *line, unsigned int *offset)
{
	struct gpio_v2_line_info info;
	int64_t number;

	for (*offset = 0; *offset < chip->lines; (*offset)++) {
		if (line_info(chip, *offset, &info) && !strncmp(info.name, line, sizeof(info.name)))
			return 0;
	}
	if (!options_int(line, &number) || number < 0 || number >= (int64_t)chip->lines)
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"%s has no line '%s'; its lines are 0 to %u, and gpioinfo shows their names",
			chip->spec->chip, line, chip->lines - 1);
	*offset = (unsigned int)number;
	return 0;
}

static int refused(const struct chip *chip, const char *line, unsigned int offset, bool input)
{
	struct gpio_v2_line_info info = {0};
	int error = errno;

	if (error == EBUSY && line_info(chip, offset, &info))
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"line %s of %s is in use by '%.*s'; use another line, or end that program first",
			line, chip->spec->chip, (int)sizeof(info.consumer),
			info.consumer[0] ? info.consumer : "?");
	if (input && (error == ENXIO || error == EOPNOTSUPP))
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"line %s of %s does not have an interrupt (%s), so a task cannot wait for its "
			"edges; use another line",
			line, chip->spec->chip, strerror(error));
	return error_line(STATUS_CANNOT_MEASURE, "path", "line %s of %s cannot be an %s: %s", line,
			  chip->spec->chip, input ? "input that waits for edges" : "output", strerror(error));
}

/* Opens the line as an output at 0, or as an input that waits for both edges. Returns 0 or the exit
 * status. */
static int request(const struct chip *chip, const char *line, const char *consumer, bool input, int *fd)
{
	static const uint64_t biases[] = {
		[GPIO_BIAS_AS_IS] = 0,
		[GPIO_BIAS_DISABLED] = GPIO_V2_LINE_FLAG_BIAS_DISABLED,
		[GPIO_BIAS_PULL_UP] = GPIO_V2_LINE_FLAG_BIAS_PULL_UP,
		[GPIO_BIAS_PULL_DOWN] = GPIO_V2_LINE_FLAG_BIAS_PULL_DOWN,
	};
	struct gpio_v2_line_request request = {.num_lines = 1};
	unsigned int offset;
	int status = find_line(chip, line, &offset);

	if (status)
		return status;
	request.offsets[0] = offset;
	snprintf(request.consumer, sizeof(request.consumer), "%s", consumer);
	/* Outputs keep the chip's own bias, which few chips have. */
	request.config.flags = input ? GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_EDGE_RISING |
					       GPIO_V2_LINE_FLAG_EDGE_FALLING | biases[chip->spec->bias]
				     : GPIO_V2_LINE_FLAG_OUTPUT;
	if (chip->spec->active_low)
		request.config.flags |= GPIO_V2_LINE_FLAG_ACTIVE_LOW;
	if (ask(chip->fd, GPIO_V2_GET_LINE_IOCTL, &request))
		return refused(chip, line, offset, input);
	*fd = request.fd;
	return 0;
}

unsigned int gpio_uses(enum path_role role, bool both_ways, struct line_use use[GPIO_LINES])
{
	unsigned int count = 0;

	if (role != PATH_SLAVE) {
		use[count++] = (struct line_use){PATH_MASTER, false};
		if (both_ways)
			use[count++] = (struct line_use){PATH_MASTER, true};
	}
	if (role != PATH_MASTER) {
		if (both_ways)
			use[count++] = (struct line_use){PATH_SLAVE, false};
		use[count++] = (struct line_use){PATH_SLAVE, true};
	}
	return count;
}

const char *gpio_wanted_lines(enum path_role role, bool both_ways)
{
	if (!both_ways)
		return role == PATH_BOTH ? "OUT,IN (wired together)" : role == PATH_MASTER ? "OUT" : "IN";
	return role == PATH_BOTH ? "OUT,IN,SLAVE_OUT,SLAVE_IN (wire OUT to SLAVE_IN, and SLAVE_OUT to IN)"
				 : "OUT,IN";
}

/* Names the line as a kernel module requests it. Returns 0 or the exit status. */
static int name_for_kernel(const struct chip *chip, const char *name, bool input, struct rtgauge_line *line)
{
	static const uint32_t biases[] = {
		[GPIO_BIAS_PULL_UP] = RTGAUGE_LINE_PULL_UP,
		[GPIO_BIAS_PULL_DOWN] = RTGAUGE_LINE_PULL_DOWN,
	};
	int status = find_line(chip, name, &line->offset);

	snprintf(line->chip, sizeof(line->chip), "%.*s", (int)sizeof(line->chip) - 1, chip->label);
	if (chip->spec->active_low)
		line->flags |= RTGAUGE_LINE_ACTIVE_LOW;
	if (input && chip->spec->bias)
		line->flags |= biases[chip->spec->bias];
	return status;
}

int gpio_open_lines(const char *rest, enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends)
{
	struct line_use use[GPIO_LINES];
	unsigned int count = gpio_uses(role, both_ways, use);
	struct gpio_spec spec;
	struct chip chip = {.spec = &spec, .text = rest};
	const char *why;
	int status;

	if (!gpio_spec_parse(rest, &spec, &why))
		return error_line(STATUS_USAGE, "path", "--path gpio:%.100s: %s", rest, why);
	if (spec.line_count != count)
		return error_line(STATUS_USAGE, "path", "--path gpio:%.100s: --role %s needs the lines %s",
				  rest, path_role_names[role], gpio_wanted_lines(role, both_ways));
	status = open_chip(&chip);
	for (unsigned int i = 0; i < count && !status; i++) {
		struct path_end *end = &ends[use[i].end];

		if (kernel && use[i].end == kernel->task) {
			status = name_for_kernel(&chip, spec.lines[i], use[i].input,
						 use[i].input ? &kernel->in : &kernel->out);
			continue;
		}
		status = request(&chip, spec.lines[i],
				 use[i].end == PATH_SLAVE ? PATH_SLAVE_NAME : PATH_MASTER_NAME, use[i].input,
				 use[i].input ? &end->in : &end->out);
	}
	if (chip.fd >= 0)
		close(chip.fd);
	return status;
}

static int open_lines(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	return gpio_open_lines(rest, role, both_ways, NULL, ends);
}

static int send_edge(struct path_end *end, int64_t number)
{
	struct gpio_v2_line_values values = {.mask = 1};

	(void)number;
	end->level = !end->level;
	values.bits = end->level;
	return ask(end->out, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) ? errno : 0;
}

static int receive_edge(struct path_end *end, struct edge *edge)
{
	struct gpio_v2_line_event events[EVENTS_AT_ONCE];
	const struct gpio_v2_line_event *last;
	ssize_t len = read(end->in, events, sizeof(events));
	size_t count;

	if (len < (ssize_t)sizeof(events[0]))
		return len < 0 ? errno : EIO;
	count = (size_t)len / sizeof(events[0]);
	last = &events[count - 1];
	/* Only the numbers show which edges a full buffer dropped. */
	edge->count = end->line_number ? last->line_seqno - end->line_number : (unsigned int)count;
	end->line_number = last->line_seqno;
	edge->number = EDGE_UNNUMBERED;
	edge->time_ns = (int64_t)last->timestamp_ns;
	/* The slave's output follows its input, whatever was lost before. */
	if (end->slave)
		end->level = last->id == GPIO_V2_LINE_EVENT_FALLING_EDGE;
	return 0;
}

const struct path_kind path_gpio = {
	.name = "gpio",
	.stamped = true,
	.open = open_lines,
	.send = send_edge,
	.receive = receive_edge,
};
