// SPDX-License-Identifier: MIT
#include "agent/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/process_tree.h"
#include "base/cpuset.h"
#include "base/options.h"

#define KILL_NS (5 * NS_PER_S) /* a process that outlives SIGKILL this long hangs in the kernel */
#define KILL_STEP_MS 10

static _Noreturn void become(char **program, int in, int report, pid_t parent)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	/* When the guard is killed with -9 the program goes too; it may have been killed before this call. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
	if (dup2(in, STDIN_FILENO) >= 0)
		execvp(program[0], program);
	error = errno;
	_exit(write(report, &error, sizeof(error)) == sizeof(error) ? 127 : 126);
}

void guard_start(struct guard *guard, char **program)
{
	int in[2], report[2];
	pid_t parent = getpid(), child;
	int error = 0;

	guard->reason = "exec";
	guard->status = 127;
	if (pipe2(in, O_CLOEXEC) || pipe2(report, O_CLOEXEC)) {
		guard->start_error = errno;
		return;
	}
	child = fork();
	if (!child)
		become(program, in[0], report[1], parent);
	if (child < 0)
		error = errno;
	close(in[0]);
	close(report[1]);
	/* The pipe ends without a word when exec worked. */
	while (child > 0 && read(report[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(report[0]);
	guard->start_error = error;
	if (error) {
		close(in[1]);
		if (child > 0)
			waitpid(child, NULL, 0);
		return;
	}
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	guard->program = child;
	guard->program_in = in[1];
}

static void close_input(struct guard *guard)
{
	if (guard->program_in >= 0)
		close(guard->program_in);
	guard->program_in = -1;
}

static void enter_phase(struct guard *guard, enum phase phase)
{
	guard->phase = phase;
	close_input(guard);
	if (phase == PHASE_CLOSED) {
		guard->phase_end = clock_now_ns(CLOCK_MONOTONIC) + guard->grace_ns / 10;
	} else if (phase == PHASE_TERM) {
		process_tree_signal(SIGTERM);
		guard->phase_end = clock_now_ns(CLOCK_MONOTONIC) + guard->grace_ns;
	} else {
		guard->phase_end = clock_now_ns(CLOCK_MONOTONIC) + KILL_NS;
	}
}

static void begin_end(struct guard *guard, const char *reason)
{
	if (guard->phase != PHASE_RUN)
		return;
	guard->reason = reason;
	enter_phase(guard, guard->exited ? PHASE_TERM : PHASE_CLOSED);
}

static void take_line(struct guard *guard)
{
	size_t len = guard->used;

	guard->line[len] = '\n';
	if (guard->too_long) {
		guard->dropped++;
	} else if (len == 5 && !memcmp(guard->line, "renew", 5)) {
		guard->lease_end = clock_now_ns(CLOCK_MONOTONIC) + guard->lease_ns;
	} else if (guard->program) {
		if (guard->program_in < 0 || write(guard->program_in, guard->line, len + 1) < 0)
			guard->dropped++;
	} else if (len == 4 && !memcmp(guard->line, "stop", 4)) {
		begin_end(guard, "stop");
	} else {
		guard->dropped++;
	}
	guard->used = 0;
	guard->too_long = false;
}

static void take_input(struct guard *guard)
{
	char buffer[4096];
	ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	for (ssize_t i = 0; i < n; i++) {
		if (buffer[i] == '\n')
			take_line(guard);
		else if (guard->used < LINE_MAX_LEN - 1)
			guard->line[guard->used++] = buffer[i];
		else
			guard->too_long = true;
	}
	if (n > 0)
		return;
	if (guard->used)
		take_line(guard);
	guard->input_over = true;
	if (!guard->detach)
		begin_end(guard, "eof");
}

static void reap(struct guard *guard)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != guard->program)
			continue;
		guard->exited = true;
		guard->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
		guard->status = guard->signal ? 128 + guard->signal : WEXITSTATUS(status);
		begin_end(guard, "exit");
	}
}

static void take_signals(struct guard *guard)
{
	struct signalfd_siginfo info;

	while (read(guard->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD || (info.ssi_signo == SIGHUP && guard->detach))
			continue;
		/* Asked a second time: do not wait for those that take theirs. */
		if (guard->phase == PHASE_RUN)
			begin_end(guard, "signal");
		else if (guard->phase < PHASE_KILL)
			enter_phase(guard, PHASE_KILL);
	}
	reap(guard);
}

/* One that outlives SIGKILL may wait for a CPU that a real-time task holds: it may go to any other. */
static void let_run_anywhere(pid_t pid)
{
	struct cpuset allowed;
	char path[64];
	DIR *tasks;
	const struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = cpuset_allowed(&allowed) ? opendir(path) : NULL;
	while (tasks && (entry = readdir(tasks))) {
		int64_t tid;

		if (options_int(entry->d_name, &tid) && tid > 0)
			cpuset_pin((pid_t)tid, &allowed);
	}
	if (tasks)
		closedir(tasks);
}

/* Sends SIGKILL to all that live still, and counts each process once. */
static size_t kill_all(struct guard *guard, pid_t **before, size_t count_before)
{
	pid_t *pids;
	size_t count;

	count = process_tree_list(getpid(), &pids);
	/* The group at once: it cannot fork away from that. While its leader is not reaped nobody else can
	 * have its number. */
	if (guard->program && !guard->exited)
		kill(-guard->program, SIGKILL);
	for (size_t i = 0; i < count; i++) {
		bool known = false;

		for (size_t k = 0; k < count_before && !known; k++)
			known = (*before)[k] == pids[i];
		if (known)
			let_run_anywhere(pids[i]);
		if (!kill(pids[i], SIGKILL) && !known)
			guard->killed++;
	}
	free(*before);
	*before = pids;
	return count;
}

static int wait_ms(const struct guard *guard)
{
	int64_t end = guard->phase == PHASE_RUN ? guard->lease_end : guard->phase_end;
	int64_t left = end - clock_now_ns(CLOCK_MONOTONIC);

	if (guard->phase == PHASE_KILL)
		return KILL_STEP_MS;
	if (left <= 0)
		return 0;
	/* Rounded up, so that it does not spin through the last millisecond; once an hour is often enough for
	 * a long lease. */
	return left > 3600 * NS_PER_S ? 3600000 : (int)((left + 999999) / 1000000);
}

static void wait_for_more(struct guard *guard, const struct holder *self)
{
	struct pollfd fds[] = {
		{.fd = guard->signals, .events = POLLIN},
		{.fd = guard->lock, .events = POLLIN},
		{.fd = guard->input_over || guard->phase != PHASE_RUN ? -1 : STDIN_FILENO, .events = POLLIN},
	};

	if (poll(fds, 3, wait_ms(guard)) < 0)
		return;
	if (fds[0].revents)
		take_signals(guard);
	if (fds[1].revents)
		machine_lock_answer(guard->lock, self);
	if (fds[2].revents)
		take_input(guard);
}

static bool all_gone(const struct guard *guard)
{
	pid_t *pids;
	size_t count;

	if (guard->program && !guard->exited)
		return false;
	count = process_tree_list(getpid(), &pids);
	free(pids);
	return !count;
}

void guard_loop(struct guard *guard, const struct holder *self)
{
	pid_t *targets = NULL;
	size_t count = 0;

	guard->status = 0;
	guard->lease_end = clock_now_ns(CLOCK_MONOTONIC) + guard->lease_ns;
	while (guard->phase == PHASE_RUN || !all_gone(guard)) {
		if (guard->phase == PHASE_KILL) {
			count = kill_all(guard, &targets, count);
			if (clock_now_ns(CLOCK_MONOTONIC) >= guard->phase_end) {
				guard->remaining = count;
				break;
			}
		}
		wait_for_more(guard, self);
		if (guard->phase == PHASE_RUN && clock_now_ns(CLOCK_MONOTONIC) >= guard->lease_end)
			begin_end(guard, "lease");
		else if (guard->phase != PHASE_RUN && guard->phase < PHASE_KILL &&
			 clock_now_ns(CLOCK_MONOTONIC) >= guard->phase_end)
			enter_phase(guard, guard->phase + 1);
	}
	free(targets);
}
