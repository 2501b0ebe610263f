// SPDX-License-Identifier: MIT
/* Xenomai 3's co-kernel, through its POSIX interface. */
#include "rt/runtime.h"

#include <cobalt/sys/cobalt.h>
#include <cobalt/uapi/kernel/thread.h>
#include <cobalt/uapi/signal.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xenomai/init.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "rt/lacking.h"

#define PATIENCE_NS NS_PER_S

/* What Cobalt lacks, among the options of its probes. Any other choice works. */
static const struct lacking lacking[] = {
	{NULL, "policy", "deadline", NULL},	  {NULL, "explain-instance", NULL, "--explain"},
	{"wakeup", "space", "kernel", NULL},	  {"response", "trace-instance", NULL, "--trace-parts"},
	{"semaphore", "method", "eventfd", NULL}, {"semaphore", "method", "pipe", NULL},
	{"inversion", "lock", "futex", NULL},	  {NULL, NULL, NULL, NULL},
};

static const char *const probes[] = {"inversion", "noise",   "periodic", "preempt", "response", "semaphore",
				     "switch",	  "taskset", "tire",	 "wakeup",  NULL};

static bool joined, beginning;
static _Atomic int last_reason;

/* If the library cannot continue, it ends the process after a line of its own on standard error. */
static void left_early(void)
{
	if (beginning)
		error_line(
			STATUS_CANNOT_MEASURE, "runtime",
			"Xenomai's library could not start (see its message on standard error); check that it was built for this kernel's Xenomai");
}

static void on_sigdebug(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	atomic_store(&last_reason, (int)sigdebug_reason(info));
}

const char *runtime_switch_cause(void)
{
	switch (atomic_load(&last_reason)) {
	case SIGDEBUG_MIGRATE_SIGNAL:
		return "a signal";
	case SIGDEBUG_MIGRATE_SYSCALL:
		return "a system call";
	case SIGDEBUG_MIGRATE_FAULT:
		return "a page fault";
	case SIGDEBUG_MIGRATE_PRIOINV:
		return "a lock that a thread of Linux holds";
	case SIGDEBUG_WATCHDOG:
		return "Xenomai's watchdog";
	default:
		return NULL;
	}
}

int64_t runtime_linux_clock_ns(clockid_t clock)
{
	struct timespec now;

	return __STD(clock_gettime(clock, &now)) ? 0 : timespec_ns(&now);
}

static int refuse_access(void)
{
	return error_line(
		STATUS_CANNOT_MEASURE, "permission",
		"this user may not use Xenomai; measure as root, or as a member of the group in the kernel "
		"parameter xenomai.allowed_group");
}

int runtime_begin(const struct verb *verb)
{
	int error = lacking_probe("Cobalt", probes, verb);
	int device;

	if (error)
		return error;
	if (access("/proc/xenomai", F_OK))
		return error_line(
			STATUS_CANNOT_MEASURE, "runtime",
			"this kernel has no Xenomai 3 (Cobalt) core; boot a kernel that has one, or leave "
			"--rt out");
	device = __STD(open("/dev/rtdm/memdev-private",
			    O_RDWR | O_CLOEXEC)); /* Cobalt's call refuses a process that has not joined */
	if (device < 0 && errno == EACCES)
		return refuse_access();
	if (device >= 0)
		close(device);
	return 0;
}

int runtime_join(void)
{
	static char *const name[] = {(char *)"rtgauge-engine-cobalt", NULL};
	struct sigaction debug = {.sa_sigaction = on_sigdebug, .sa_flags = SA_SIGINFO};
	char *const *argv = name;
	struct cpuset affinity;
	bool known;
	int argc = 1;

	if (joined)
		return 0;
	joined = beginning = true;
	atexit(left_early);
	known = cpuset_allowed(&affinity);
	xenomai_init(&argc, &argv);
	beginning = false;
	if (known)
		cpuset_pin(0, &affinity); /* Cobalt pins a thread that joins to the CPU that it is on. */
	sigemptyset(&debug.sa_mask);
	sigaction(SIGDEBUG, &debug, NULL);
	return 0;
}

int runtime_check(const char *verb, const struct option_entry *table)
{
	return lacking_choice("Cobalt", lacking, verb, table);
}

int runtime_thread_begin(void)
{
	return pthread_setmode_np(0, PTHREAD_WARNSW, NULL);
}

/* A signal would move the thread to Linux and count as a mode switch. Most sleeps soon end by themselves. */
void runtime_interrupt(pthread_t thread)
{
	static int64_t first_ns;
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (!first_ns)
		first_ns = now_ns;
	if (now_ns - first_ns > PATIENCE_NS)
		__STD(pthread_kill(thread, SIGUSR1));
}

void runtime_thread_end(void)
{
}

void runtime_thread_moves(void)
{
}

void runtime_go(void)
{
}

/* Cobalt reports this for each thread. */
int64_t runtime_switches_of_all(void)
{
	return -1;
}
