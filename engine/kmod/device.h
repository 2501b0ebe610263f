/* SPDX-License-Identifier: MIT */
/*
 * The character device of one of rtgauge's kernel modules (docs/formats/kmod.md). The engine opens it,
 * compares its ABI, and starts and stops a measurement. Samples are read from the rings in the order of
 * their numbers.
 */
#ifndef RTGAUGE_KMOD_DEVICE_H
#define RTGAUGE_KMOD_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../kmod/rtgauge_kmod.h"

/* How many samples a ring holds. The reader comes again before this many are made. */
#define KMOD_CAPACITY 4096

/* The steps of a task in the kernel: up to its interrupt, from there to its thread, and the work of the
 * one that does it. */
enum kernel_step { STEP_INTERRUPT, STEP_THREAD, STEP_WORK, KERNEL_STEPS };

/* The label `segment` of the steps' series. */
extern const char *const kernel_step_names[KERNEL_STEPS];

struct kmod_device {
	const char *name; /* of the module and of its device */
	int fd;		  /* -1: not open */
	int log;	  /* the kernel's log, for the reason of a refusal; -1: it cannot be read */
	struct rtgauge_map *map;
	struct rtgauge_sample *held; /* samples taken from the rings but not returned yet, by number */
	size_t held_count, given;
	uint64_t settled; /* one more than the highest number seen before the last look */
	bool ended;	  /* the rings were read after the measurement had ended */
};

/* Opens the device and maps its rings. Returns 0, or the exit status after an `error` line. */
int kmod_open(struct kmod_device *device, const char *name);

/*
 * Starts a measurement with one of the commands RTGAUGE_IOC_START_* and its parameters. Returns 0, or the
 * exit status after an `error` line with the reason from the kernel's log.
 */
int kmod_start(struct kmod_device *device, unsigned long command, void *parameters);

/* Stops the measurement. Its samples can still be read. */
void kmod_stop(struct kmod_device *device);

/* Reads the status. Returns false if it could not be read. */
bool kmod_status(const struct kmod_device *device, struct rtgauge_status *status);

/*
 * Looks at the rings. Then kmod_next returns samples in the order of their numbers. A sample of one CPU
 * may be seen before an earlier sample of another CPU, so the newest wait for the next look. Returns true
 * if the measurement has ended; kmod_next then returns all the rest.
 */
bool kmod_look(struct kmod_device *device);

/* Returns the next sample; NULL: none before the next look. */
const struct rtgauge_sample *kmod_next(struct kmod_device *device);

#endif
