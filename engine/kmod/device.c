// SPDX-License-Identifier: MIT
#include "kmod/device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "rt/runtime.h"

#define HELD 65536

const char *const kernel_step_names[KERNEL_STEPS] = {"interrupt-latency", "thread-latency", "service-time"};

/* A request is an unsigned long in glibc and an int in musl. The kernel accepts both. */
static int ask(const struct kmod_device *device, unsigned long request, void *argument)
{
	return RUNTIME_LINUX(ioctl(device->fd, request, argument)) ? errno : 0;
}

static int not_open(const char *name, int error)
{
	if (error == ENOENT || error == ENXIO || error == ENODEV)
		return error_line(
			STATUS_CANNOT_MEASURE, "kernel-module",
			"the kernel module %s is not loaded; load it with insmod (docs/kmod.md), or measure "
			"with rtgauge, which loads it",
			name);
	if (error == EBUSY)
		return error_line(STATUS_CANNOT_MEASURE, "kernel-module",
				  "another process is using /dev/%s, which only one can use at a time; wait "
				  "until it ends",
				  name);
	return error_line(STATUS_CANNOT_MEASURE, "kernel-module", "cannot open /dev/%s (%s)%s", name,
			  strerror(error), error == EACCES || error == EPERM ? "; run as root" : "");
}

/* Checks that the device has this engine's ABI. Returns 0 or the exit status. */
static int check(struct kmod_device *device, struct rtgauge_info *info)
{
	int error = ask(device, RTGAUGE_IOC_INFO, info);

	/* The command's number contains the size of its data, so another ABI may not know it. */
	if (error || info->abi != RTGAUGE_KMOD_ABI || info->sample_size != sizeof(struct rtgauge_sample)) {
		char abi[32] = "another ABI";

		if (!error && info->abi != RTGAUGE_KMOD_ABI)
			snprintf(abi, sizeof(abi), "ABI %u", info->abi);
		return error_line(
			STATUS_CANNOT_MEASURE, "kernel-module",
			"the loaded kernel module %s has %s, but this engine uses ABI %d; remove it (rmmod %s), then rtgauge loads its own",
			device->name, abi, RTGAUGE_KMOD_ABI, device->name);
	}
	return 0;
}

static int map_rings(struct kmod_device *device)
{
	uint32_t capacity = KMOD_CAPACITY;
	struct rtgauge_info info;
	int error = ask(device, RTGAUGE_IOC_CAPACITY, &capacity);

	if (!error)
		error = ask(device, RTGAUGE_IOC_INFO, &info);
	if (!error) {
		void *map = RUNTIME_LINUX(
			mmap(NULL, info.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, device->fd, 0));

		error = map == MAP_FAILED ? errno : 0;
		device->map = error ? NULL : map;
	}
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "kernel-module",
				  "cannot read the samples of the kernel module %s (%s); remove the module "
				  "(rmmod %s), then measure again",
				  device->name, strerror(error), device->name);
	device->held = calloc(HELD, sizeof(*device->held));
	return device->held ? 0 : error_line(STATUS_CANNOT_MEASURE, "internal", "out of memory");
}

int kmod_open(struct kmod_device *device, const char *name)
{
	struct rtgauge_info info;
	char path[64];
	int status;

	*device = (struct kmod_device){.name = name, .fd = -1, .log = -1};
	snprintf(path, sizeof(path), "/dev/%s", name);
	device->fd = RUNTIME_LINUX(open(path, O_RDWR | O_CLOEXEC));
	if (device->fd < 0)
		return not_open(name, errno);
	status = check(device, &info);
	return status ? status : map_rings(device);
}

/* Returns the text of one record of /dev/kmsg, "6,339,5140900,-;text". */
static const char *text_of(char *record)
{
	char *text = strchr(record, ';');

	if (!text)
		return "";
	text[strcspn(text, "\n")] = '\0';
	return text + 1;
}

/* Returns what the module last wrote to the kernel's log since the log was opened; empty: nothing. */
static void read_reason(const struct kmod_device *device, char *reason, size_t size)
{
	char record[1024];
	ssize_t length;

	reason[0] = '\0';
	while (device->log >= 0) {
		length = read(device->log, record, sizeof(record) - 1);
		if (length < 0 && errno == EPIPE)
			continue; /* records were overwritten */
		if (length <= 0)
			break;
		record[length] = '\0';
		if (!strncmp(text_of(record), device->name, strlen(device->name)))
			snprintf(reason, size, "%s", text_of(record));
	}
}

int kmod_start(struct kmod_device *device, unsigned long command, void *parameters)
{
	char reason[512];
	int error;

	device->log = RUNTIME_LINUX(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	if (device->log >= 0)
		lseek(device->log, 0, SEEK_END);
	error = ask(device, command, parameters);
	read_reason(device, reason, sizeof(reason));
	if (device->log >= 0)
		close(device->log);
	device->held_count = device->given = 0;
	device->settled = 0;
	device->ended = false;
	if (!error)
		return 0;
	if (reason[0])
		return error_line(STATUS_CANNOT_MEASURE, "kernel-module", "%s", reason);
	return error_line(STATUS_CANNOT_MEASURE, "kernel-module", "the kernel module %s did not start: %s%s",
			  device->name, strerror(error),
			  error == EBUSY ? " (something else uses a line; gpioinfo shows what)"
					 : "; see dmesg");
}

void kmod_stop(struct kmod_device *device)
{
	ask(device, RTGAUGE_IOC_STOP, NULL);
}

bool kmod_status(const struct kmod_device *device, struct rtgauge_status *status)
{
	return !ask(device, RTGAUGE_IOC_STATUS, status);
}

static int by_number(const void *a, const void *b)
{
	const struct rtgauge_sample *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static void read_ring(struct kmod_device *device, struct rtgauge_ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;

	for (; tail != head && device->held_count < HELD; tail++)
		device->held[device->held_count++] = ring->samples[tail % device->map->capacity];
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

bool kmod_look(struct kmod_device *device)
{
	struct rtgauge_status status;
	struct rtgauge_map *map = device->map;

	/* Read the state first: everything that was written before the end is then in the rings. */
	device->ended = !kmod_status(device, &status) || status.state != RTGAUGE_STATE_RUNNING;
	device->held_count -= device->given;
	memmove(device->held, device->held + device->given, device->held_count * sizeof(*device->held));
	device->given = 0;
	if (device->held_count)
		device->settled = device->held[device->held_count - 1].number + 1;
	for (uint32_t i = 0; i < map->rings; i++)
		read_ring(device, (struct rtgauge_ring *)((char *)map + map->first + i * map->stride));
	qsort(device->held, device->held_count, sizeof(*device->held), by_number);
	return device->ended;
}

const struct rtgauge_sample *kmod_next(struct kmod_device *device)
{
	const struct rtgauge_sample *next = &device->held[device->given];

	if (device->given == device->held_count || (!device->ended && next->number >= device->settled))
		return NULL;
	device->given++;
	return next;
}
