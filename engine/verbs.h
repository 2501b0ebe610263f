/* SPDX-License-Identifier: MIT */
/* One function a verb: argv[0] is the verb's own name; the answer is the exit status (docs/formats/stream.md,
 * `error`). */
#ifndef RTGAUGE_VERBS_H
#define RTGAUGE_VERBS_H

#include <stddef.h>

#define ENGINE_VERSION "0.1.0"

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

extern const struct verb verbs[];
extern const size_t verb_count;

int verb_wakeup(int argc, char **argv);
int verb_noise(int argc, char **argv);
int verb_switch(int argc, char **argv);
int verb_preempt(int argc, char **argv);
int verb_semaphore(int argc, char **argv);
int verb_inversion(int argc, char **argv);
int verb_calibrate(int argc, char **argv);
int verb_periodic(int argc, char **argv);
int verb_response(int argc, char **argv);
int verb_taskset(int argc, char **argv);
int verb_tire(int argc, char **argv);
int verb_read(int argc, char **argv);
int verb_set(int argc, char **argv);
int verb_restore(int argc, char **argv);
int verb_gather(int argc, char **argv);
int verb_enter(int argc, char **argv);
int verb_guard(int argc, char **argv);
int verb_attach(int argc, char **argv);

#endif
