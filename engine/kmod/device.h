/* SPDX-License-Identifier: MIT */
/*
 * The character device of one of rtgauge's kernel modules (docs/formats/kmod.md): opened, its ABI compared,
 * a measurement started and stopped, and its samples taken from the rings in the order of their numbers.
 */
#ifndef RTGAUGE_KMOD_DEVICE_H
#define RTGAUGE_KMOD_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../kmod/rtgauge_kmod.h"

/* Samples that a ring holds: whoever takes them comes again before so many were made. */
#define KMOD_CAPACITY 4096

/* The steps of a task in the kernel: to its interrupt, from there to its thread, and the work of the one of
 * both that does it. */
enum kernel_step { STEP_INTERRUPT, STEP_THREAD, STEP_WORK, KERNEL_STEPS };

/* What the label `segment` of their series says. */
extern const char *const kernel_step_names[KERNEL_STEPS];

struct kmod_device {
	const char *name; /* of the module and of its device */
	int fd;		  /* -1: not open */
	int log;	  /* the kernel's, for the reason of a refusal; -1: it cannot be read */
	struct rtgauge_map *map;
	struct rtgauge_sample *held; /* taken from the rings and not given out yet, by number */
	size_t held_count, given;
	uint64_t settled; /* one more than the highest number that was seen before the last look */
	bool ended;	  /* the rings were read after the measurement's end */
};

/* Opens it and maps its rings. 0, or the exit status after an `error` line. */
int kmod_open(struct kmod_device *device, const char *name);

/*
 * Starts a measurement: one of the commands RTGAUGE_IOC_START_*, with its parameters. 0, or the exit status
 * after an `error` line with the reason that the kernel's log has.
 */
int kmod_start(struct kmod_device *device, unsigned long command, void *parameters);

/* Stops it; what it measured can still be taken. */
void kmod_stop(struct kmod_device *device);

/* false: it could not be read. */
bool kmod_status(const struct kmod_device *device, struct rtgauge_status *status);

/*
 * Looks at the rings. Then kmod_next gives, in the order of their numbers, the samples that nothing earlier
 * can follow: a sample that one CPU wrote may be seen before an earlier one of another CPU, so the newest
 * wait for the next look. true: the measurement has ended, and kmod_next gives all that is left.
 */
bool kmod_look(struct kmod_device *device);

/* The next sample; NULL: there is none before the next look. */
const struct rtgauge_sample *kmod_next(struct kmod_device *device);

#endif
