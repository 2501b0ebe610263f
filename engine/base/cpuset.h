/* SPDX-License-Identifier: MIT */
/* A set of CPU numbers, written as in 0-3,6. */
#ifndef RTGAUGE_CPUSET_H
#define RTGAUGE_CPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CPUSET_MAX 8192 /* the largest CONFIG_NR_CPUS */

struct cpuset {
	uint64_t word[CPUSET_MAX / 64];
};

void cpuset_clear(struct cpuset *set);
void cpuset_add(struct cpuset *set, unsigned int cpu);
bool cpuset_has(const struct cpuset *set, unsigned int cpu);
unsigned int cpuset_count(const struct cpuset *set);

/* Returns the first CPU of the set from `from` on; -1 if there is none. */
int cpuset_next(const struct cpuset *set, unsigned int from);

/* Parses "0-3,6". An empty text is an empty set. Returns false if it is not a CPU list; the set is then
 * undefined. */
bool cpuset_parse(struct cpuset *set, const char *text);

/* The inverse; leaves out everything from the first part that does not fit into size. Returns text. */
char *cpuset_format(const struct cpuset *set, char *text, size_t size);

/* Set the CPUs that are online, that are present, that the machine isolated at boot, or that this process
 * may use (affinity). Return false if they cannot be read. */
bool cpuset_online(struct cpuset *set);
bool cpuset_present(struct cpuset *set);
bool cpuset_isolated(struct cpuset *set);
bool cpuset_allowed(struct cpuset *set);

/* Lets a thread (tid 0: the calling one) run only on these CPUs. Returns 0 or an errno. */
int cpuset_pin(pid_t tid, const struct cpuset *set);

#endif
