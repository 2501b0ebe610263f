// SPDX-License-Identifier: MIT
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/process.h"
#include "agent/setting_kind.h"
#include "base/clock.h"
#include "base/cpuset.h"
#include "base/options.h"

#define PREFIX "thread:"
#define RESET_ON_FORK 0x40000000
#define RESET_WORD " reset-on-fork"
#define LIST_MAX 4096
#define STATE_TRIES 1000
#define STATE_PAUSE_NS (NS_PER_S / 1000)

static const struct {
	const char *word;
	int number;
	bool realtime;
} policies[] = {
	{"other", SCHED_OTHER, false}, {"fifo", SCHED_FIFO, true}, {"rr", SCHED_RR, true},
	{"batch", 3, false},	       {"idle", 5, false},
};

struct thread {
	pid_t tid;
	int64_t start;
	enum { POLICY, AFFINITY, STATE } part;
};

/* Returns the whole number before the next colon; -1 without a number. */
static int64_t part(const char **at)
{
	char text[24];
	size_t len = strcspn(*at, ":");
	int64_t number;

	if (!len || len >= sizeof(text) || (*at)[len] != ':')
		return -1;
	memcpy(text, *at, len);
	text[len] = '\0';
	*at += len + 1;
	return options_int(text, &number) ? number : -1;
}

static bool parse(const char *name, struct thread *thread)
{
	const char *at = name + strlen(PREFIX);
	int64_t tid;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return false;
	tid = part(&at);
	if (tid <= 0 || tid > INT32_MAX)
		return false;
	thread->tid = (pid_t)tid;
	thread->start = part(&at);
	thread->part = !strcmp(at, "affinity") ? AFFINITY : !strcmp(at, "state") ? STATE : POLICY;
	return thread->start >= 0 && (thread->part != POLICY || !strcmp(at, "policy"));
}

static bool is_thread(const char *name)
{
	struct thread thread;

	return parse(name, &thread);
}

static int read_affinity(pid_t tid, char **value)
{
	struct cpuset set;

	cpuset_clear(&set);
	/* Use the system call itself, because the C library's cpu_set_t ends at 1024 CPUs. */
	if (syscall(SYS_sched_getaffinity, tid, sizeof(set.word), set.word) < 0)
		return errno;
	*value = malloc(LIST_MAX);
	if (!*value)
		return ENOMEM;
	cpuset_format(&set, *value, LIST_MAX);
	return 0;
}

static int write_affinity(pid_t tid, const char *value)
{
	struct cpuset set;

	if (!cpuset_parse(&set, value) || !cpuset_count(&set))
		return EINVAL;
	return syscall(SYS_sched_setaffinity, tid, sizeof(set.word), set.word) ? errno : 0;
}

static int read_policy(pid_t tid, char **value)
{
	struct sched_param param = {0};
	int policy = (int)syscall(SYS_sched_getscheduler, tid);
	const char *reset = policy & RESET_ON_FORK ? RESET_WORD : "";
	int n = -1;

	if (policy < 0 || syscall(SYS_sched_getparam, tid, &param))
		return errno;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		if ((policy & ~RESET_ON_FORK) != policies[i].number)
			continue;
		if (policies[i].realtime)
			n = asprintf(value, "%s %d%s", policies[i].word, param.sched_priority, reset);
		else
			n = asprintf(value, "%s%s", policies[i].word, reset);
		return n < 0 ? ENOMEM : 0;
	}
	return ENOTSUP;
}

static int write_policy(pid_t tid, const char *value)
{
	size_t len = strcspn(value, " ");
	struct sched_param param = {0};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		const char *rest = value + len;
		int policy = policies[i].number;

		if (strlen(policies[i].word) != len || strncmp(value, policies[i].word, len))
			continue;
		if (policies[i].realtime) {
			char *end;

			if (rest[0] != ' ' || rest[1] < '1' || rest[1] > '9')
				return EINVAL;
			param.sched_priority = (int)strtol(rest + 1, &end, 10);
			rest = end;
		}
		if (!strcmp(rest, RESET_WORD))
			policy |= RESET_ON_FORK;
		else if (*rest)
			return EINVAL;
		return syscall(SYS_sched_setscheduler, tid, policy, &param) ? errno : 0;
	}
	return EINVAL;
}

static bool is_stopped(pid_t pid)
{
	struct process process;

	return process_read(pid, &process) && process.state == 'T';
}

/* Waits until all threads of the process have handled the signal. */
static int write_state(const struct thread *thread, const char *value)
{
	bool stop = !strcmp(value, "stopped");
	int error;

	if (!stop && strcmp(value, "running"))
		return EINVAL;
	error = process_signal(thread->tid, thread->start, stop ? SIGSTOP : SIGCONT);
	for (int tries = 0; !error && tries < STATE_TRIES && is_stopped(thread->tid) != stop; tries++)
		clock_pause_ns(STATE_PAUSE_NS);
	return error;
}

static int read_state(pid_t pid, char **value)
{
	*value = strdup(is_stopped(pid) ? "stopped" : "running");
	return *value ? 0 : ENOMEM;
}

/* Parses the name, and finds its thread. Returns 0, EINVAL or ESRCH. */
static int find(const char *name, struct thread *thread)
{
	if (!parse(name, thread))
		return EINVAL;
	return process_lives(thread->tid, thread->start) ? 0 : ESRCH;
}

static int read_setting(const char *name, char **value)
{
	struct thread thread;
	int error = find(name, &thread);

	if (error)
		return error;
	switch (thread.part) {
	case AFFINITY:
		return read_affinity(thread.tid, value);
	case STATE:
		return read_state(thread.tid, value);
	default:
		return read_policy(thread.tid, value);
	}
}

static int write_setting(const char *name, const char *value)
{
	struct thread thread;
	int error = find(name, &thread);

	if (error)
		return error;
	switch (thread.part) {
	case AFFINITY:
		return write_affinity(thread.tid, value);
	case STATE:
		return write_state(&thread, value);
	default:
		return write_policy(thread.tid, value);
	}
}

const struct setting_kind setting_thread = {is_thread, read_setting, write_setting};
