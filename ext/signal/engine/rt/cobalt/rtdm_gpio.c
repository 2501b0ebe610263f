// SPDX-License-Identifier: MIT
/*
 * rtdm:CHIP:LINES, and the wire on Cobalt: GPIO lines that are RTDM devices, /dev/rtdm/CHIP/gpioN, of
 * Xenomai's drivers or of the kernel module rtgauge_wire_cobalt (rtdm/gpio.h). An edge is a write to an
 * output. The other end waits by reading its input, which returns the kernel's time stamp of the edge.
 * Both ends stay in primary mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <rtdm/gpio.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "ext/signal/engine/path/gpio_spec.h"
#include "ext/signal/engine/path/path.h"
#include "rt/wait.h"

/* The devices of each end. The process that uses an end opens its devices, because on Cobalt an open
 * device belongs to one process. */
static char files[2][2][GPIO_TEXT + 32]; /* [slave][input] */

/* Returns 0 or an errno. */
static int open_line(const char *file, bool input, int *fd)
{
	int trigger = GPIO_TRIGGER_EDGE_RISING | GPIO_TRIGGER_EDGE_FALLING, low = 0, on = 1;

	*fd = open(file, O_RDWR);
	if (*fd < 0)
		return errno;
	if (!input)
		return ioctl(*fd, GPIO_RTIOC_DIR_OUT, &low) ? errno : 0;
	return ioctl(*fd, GPIO_RTIOC_TS_MONO, &on) || ioctl(*fd, GPIO_RTIOC_IRQEN, &trigger) ? errno : 0;
}

static int join(struct path_end *end)
{
	int error = 0;

	for (int input = 0; input < 2 && !error; input++) {
		if (files[end->slave][input][0])
			error = open_line(files[end->slave][input], input, input ? &end->in : &end->out);
	}
	return error;
}

/* Returns 0, or the exit status after an `error` line. */
static int check_line(const char *chip, const char *line, char *file, size_t size)
{
	int64_t number;

	if (!options_int(line, &number) || number < 0)
		return error_line(
			STATUS_USAGE, "path",
			"--path rtdm:%.50s: '%.50s' is not a line; give the N of /dev/rtdm/%.50s/gpioN", chip,
			line, chip);
	snprintf(file, size, "/dev/rtdm/%s/gpio%d", chip, (int)number);
	if (access(file, R_OK | W_OK))
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"this machine lacks %s (%s); ls /dev/rtdm shows the chips that have an RTDM driver, "
			"and --path wire works without one",
			file, strerror(errno));
	return 0;
}

int rtdm_open_lines(const char *rest, enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends)
{
	struct line_use use[GPIO_LINES];
	unsigned int count = gpio_uses(role, both_ways, use);
	struct gpio_spec spec;
	const char *why;
	int status = 0;

	if (!gpio_spec_parse(rest, &spec, &why))
		return error_line(STATUS_USAGE, "path", "--path rtdm:%.100s: %s", rest, why);
	if (spec.bias || spec.active_low)
		return error_line(
			STATUS_USAGE, "path",
			"--path rtdm:%.100s: leave out the options, because the description of the board "
			"sets them for RTDM lines",
			rest);
	if (spec.line_count != count)
		return error_line(STATUS_USAGE, "path", "--path rtdm:%.100s: --role %s needs the lines %s",
				  rest, path_role_names[role], gpio_wanted_lines(role, both_ways));
	for (unsigned int i = 0; i < count && !status; i++) {
		bool input = use[i].input, slave = use[i].end == PATH_SLAVE;
		char *file = files[slave][input];

		status = check_line(spec.chip, spec.lines[i], file, sizeof(files[0][0]));
		if (kernel && use[i].end == kernel->task && !status) {
			struct rtgauge_line *line = input ? &kernel->in : &kernel->out;

			snprintf(line->chip, sizeof(line->chip), "%.*s", (int)sizeof(line->chip) - 1,
				 spec.chip);
			sscanf(spec.lines[i], "%u", &line->offset);
			file[0] = '\0';
		}
	}
	ends[PATH_MASTER].kind = ends[PATH_SLAVE].kind = &path_rtdm;
	return status;
}

static int open_lines(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	return rtdm_open_lines(rest, role, both_ways, NULL, ends);
}

static int send_edge(struct path_end *end, int64_t number)
{
	int level = end->level = !end->level;

	(void)number;
	return write(end->out, &level, sizeof(level)) < 0 ? errno : 0;
}

static int receive_edge(struct path_end *end, struct edge *edge)
{
	struct rtdm_gpio_readout readout;

	if (read(end->in, &readout, sizeof(readout)) < 0)
		return errno;
	/* The level has not changed, so the previous edge was not seen. */
	edge->count = end->line_number && (end->line_number == 2) == (readout.value != 0) ? 2 : 1;
	end->line_number = readout.value ? 2 : 1;
	edge->number = EDGE_UNNUMBERED;
	edge->time_ns = (int64_t)readout.timestamp;
	/* The slave's output follows its input, whatever was lost before. */
	if (end->slave)
		end->level = !readout.value;
	return 0;
}

/* A read cannot tell whether an edge is waiting, but select can, without waiting. */
static int receive_edge_until(struct path_end *end, struct edge *edge, int64_t until_ns)
{
	const struct timespec until = ns_timespec(until_ns);
	struct timeval now = {0};
	fd_set in;
	int ready;

	wait_until_monotonic(&until);
	if (clock_now_ns(CLOCK_MONOTONIC) < until_ns)
		return EINTR;
	FD_ZERO(&in);
	FD_SET(end->in, &in);
	ready = select(end->in + 1, &in, NULL, NULL, &now);
	return ready > 0 ? receive_edge(end, edge) : ready ? errno : ETIMEDOUT;
}

const struct path_kind path_rtdm = {
	.name = "rtdm",
	.stamped = true,
	.on_cokernel = true,
	.open = open_lines,
	.join = join,
	.send = send_edge,
	.receive = receive_edge,
	.receive_until = receive_edge_until,
};
