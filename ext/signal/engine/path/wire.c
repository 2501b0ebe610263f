// SPDX-License-Identifier: MIT
#include "ext/signal/engine/path/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/stream.h"
#include "rt/runtime.h"

#define CHIPS 256
#define EDGES 65536 /* a power of two; more edges than come between two looks */

/* An output's edges that nobody has asked for yet. */
struct output {
	int64_t *time_ns; /* EDGES of them */
	uint64_t taken, put;
	int64_t dropped;
};

static struct kmod_device device = {.fd = -1};
static struct output outputs[WIRE_LINES];

/* A request is an unsigned long in glibc and an int in musl. The kernel accepts both. */
static int ask(int fd, unsigned long request, void *argument)
{
	return RUNTIME_LINUX(ioctl(fd, request, argument)) ? errno : 0;
}

static int join(unsigned int a, unsigned int b)
{
	struct rtgauge_wire_line line = {.offset = a};
	struct rtgauge_wire_ends ends = {a, b};
	int error = ask(device.fd, RTGAUGE_IOC_LINE, &line);

	if (!error && line.peer == b)
		return 0;
	if (!error)
		error = ask(device.fd, RTGAUGE_IOC_JOIN, &ends);
	if (error)
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"cannot join lines %u and %u of the wire (%s), because one of them is already "
			"joined to another line",
			a, b, strerror(error));
	return 0;
}

bool wire_is_open(void)
{
	return device.fd >= 0;
}

int wire_open(bool both_ways)
{
	int status = kmod_open(&device, RUNTIME_MODULE("rtgauge_wire"));

	for (int i = WIRE_MASTER_OUT; i <= WIRE_SLAVE_OUT && !status; i += WIRE_SLAVE_OUT) {
		outputs[i].time_ns = memory_get(EDGES * sizeof(*outputs[i].time_ns));
		if (!outputs[i].time_ns)
			status = error_line(STATUS_CANNOT_MEASURE, "internal", "out of memory");
	}
	if (!status)
		status = join(WIRE_MASTER_OUT, WIRE_SLAVE_IN);
	return status || !both_ways ? status : join(WIRE_SLAVE_OUT, WIRE_MASTER_IN);
}

#ifdef RTGAUGE_COBALT
/* On Cobalt, the lines are RTDM devices. */
static int open_chip_lines(const char *lines, enum path_role role, bool both_ways,
			   struct path_kernel_end *kernel, struct path_end *ends)
{
	char text[64];

	snprintf(text, sizeof(text), WIRE_LABEL ":%s", lines);
	return rtdm_open_lines(text, role, both_ways, kernel, ends);
}
#else
/* Returns the number of the wire's chip; -1: there is no such chip. */
static int find_chip(void)
{
	struct gpiochip_info info;
	char path[32];

	for (int i = 0; i < CHIPS; i++) {
		bool ours;
		int fd;

		snprintf(path, sizeof(path), "/dev/gpiochip%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		ours = !ask(fd, GPIO_GET_CHIPINFO_IOCTL, &info) && !strcmp(info.label, WIRE_LABEL);
		close(fd);
		if (ours)
			return i;
	}
	return -1;
}

static int open_chip_lines(const char *lines, enum path_role role, bool both_ways,
			   struct path_kernel_end *kernel, struct path_end *ends)
{
	int chip = find_chip();
	char text[64];

	if (chip < 0)
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"the GPIO chip of the wire lacks its device /dev/gpiochip*; check that devtmpfs is "
			"mounted on /dev");
	snprintf(text, sizeof(text), "gpiochip%d:%s", chip, lines);
	ends[PATH_MASTER].kind = ends[PATH_SLAVE].kind = &path_gpio;
	return gpio_open_lines(text, role, both_ways, kernel, ends);
}
#endif

int wire_open_lines(enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends)
{
	static const char *const lines[2][3] = {
		[false] = {[PATH_MASTER] = "0", [PATH_SLAVE] = "3", [PATH_BOTH] = "0,3"},
		[true] = {[PATH_MASTER] = "0,1", [PATH_SLAVE] = "2,3", [PATH_BOTH] = "0,1,2,3"},
	};

	return open_chip_lines(lines[both_ways][role], role, both_ways, kernel, ends);
}

static int open_wire(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	int status;

	if (*rest)
		return error_line(STATUS_USAGE, "path",
				  "give --path wire without lines, because it uses its own");
	if (role != PATH_BOTH)
		return error_line(STATUS_USAGE, "path",
				  "--path wire does not leave the machine; give --role both");
	status = wire_open(both_ways);
	return status ? status : wire_open_lines(role, both_ways, NULL, ends);
}

int wire_begin(void)
{
	struct rtgauge_wire parameters = {.abi = RTGAUGE_KMOD_ABI};

	return kmod_start(&device, RTGAUGE_IOC_START_WIRE, &parameters);
}

void wire_end(void)
{
	kmod_stop(&device);
}

void wire_look(void)
{
	const struct rtgauge_sample *sample;

	kmod_look(&device);
	while ((sample = kmod_next(&device))) {
		struct output *output = sample->from < WIRE_LINES ? &outputs[sample->from] : NULL;

		if (!output || !output->time_ns)
			continue;
		if (output->put - output->taken == EDGES) {
			output->taken++;
			output->dropped++;
		}
		output->time_ns[output->put++ % EDGES] = sample->time_ns[RTGAUGE_WIRE_OUT];
	}
}

int64_t wire_edge(enum wire_line output, int64_t after_ns, int64_t until_ns)
{
	struct output *o = &outputs[output];

	while (o->taken != o->put) {
		int64_t time_ns = o->time_ns[o->taken % EDGES];

		if (time_ns > until_ns)
			break;
		o->taken++;
		if (time_ns > after_ns)
			return time_ns;
	}
	return 0;
}

/* Counts edges that the wire could not record. */
static int64_t count_lost(void)
{
	struct rtgauge_status status;
	int64_t lost = kmod_status(&device, &status) ? (int64_t)status.lost : 0;

	for (int i = 0; i < WIRE_LINES; i++)
		lost += outputs[i].dropped;
	return lost;
}

void wire_conclude(int64_t compared, int64_t not_compared, const char *what, struct json *j)
{
	int64_t lost = count_lost();

	stream_result(j, "wire");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "compared", compared);
	json_int(j, "not_compared", not_compared);
	json_int(j, "lost", lost);
	stream_result_end(j);
	if (not_compared || lost)
		stream_mark(j, "reference-missing", SEVERITY_NOTE, -1,
			    "the wire's series lacks %lld %s, because their edges were not time-stamped; the "
			    "wire lost %lld edges",
			    (long long)not_compared, what, (long long)lost);
}

const struct path_kind path_wire = {
	.name = "wire",
#ifdef RTGAUGE_COBALT
	.on_cokernel = true,
#endif
	.open = open_wire,
};
