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
#include "agent/programs.h"
#include "base/cpuset.h"
#include "base/options.h"

#define KILL_NS (5 * NS_PER_S) /* a process that survives SIGKILL this long hangs in the kernel */
#define KILL_STEP_MS 10
#define WAITING_LEASE_NS (60 * NS_PER_S)
#define LOOK_NS (5 * NS_PER_S / 2) /* time between two looks at the holder, which may change unnoticed */

static _Noreturn void become(char **program, int in, int report, int noted, pid_t parent)
{
	sigset_t none;
	int error;
	char word;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	/* If the guard is killed with -9, maybe before this call, the kernel ends the program. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || read(noted, &word, 1) != 1)
		_exit(127);
	if (dup2(in, STDIN_FILENO) >= 0)
		execvp(program[0], program);
	error = errno;
	_exit(write(report, &error, sizeof(error)) == sizeof(error) ? 127 : 126);
}

void guard_start(struct guard *guard, char **program)
{
	int in[2], report[2], noted[2];
	pid_t parent = getpid(), child;
	int error = 0;

	guard->reason = "exec";
	guard->status = 127;
	if (pipe2(in, O_CLOEXEC) || pipe2(report, O_CLOEXEC) || pipe2(noted, O_CLOEXEC)) {
		guard->start_error = errno;
		return;
	}
	child = fork();
	if (!child) {
		close(noted[1]);
		become(program, in[0], report[1], noted[0], parent);
	}
	if (child < 0)
		error = errno;
	close(in[0]);
	close(report[1]);
	close(noted[0]);
	/* The program runs only after the journal has it. Without the word, it ends. */
	if (child > 0)
		guard->note_error = program_note(guard->journal, guard->self.run, child);
	if (child > 0 && !guard->note_error && write(noted[1], "", 1) != 1)
		guard->note_error = errno;
	close(noted[1]);
	/* If exec worked, the pipe closes without a word. */
	while (child > 0 && read(report[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(report[0]);
	guard->start_error = error ? error : guard->note_error;
	if (guard->start_error) {
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

/* If it ends while it waits for the lock, nothing is lost, so its lease need not be longer than this. */
static void renew(struct guard *guard)
{
	int64_t lease_ns = guard->lease_ns;

	if (guard->lock.fd >= 0 && !guard->lock.held && lease_ns > WAITING_LEASE_NS)
		lease_ns = WAITING_LEASE_NS;
	guard->self.heard_ns = clock_now_ns(CLOCK_MONOTONIC);
	guard->lease_end = guard->self.heard_ns + lease_ns;
	if (guard->lock.held)
		machine_lock_say_times(&guard->lock, &guard->self);
}

/* The host announces how long it will need. */
static void expect(struct guard *guard)
{
	int64_t left_ns;

	guard->line[guard->used] = '\0';
	if (!options_int(guard->line + 7, &left_ns) || left_ns < 0 || left_ns > INT64_MAX / 4) {
		guard->dropped++;
		return;
	}
	guard->self.ends_ns = clock_now_ns(CLOCK_MONOTONIC) + left_ns;
	if (guard->lock.held)
		machine_lock_say_times(&guard->lock, &guard->self);
}

static void take_line(struct guard *guard)
{
	size_t len = guard->used;

	guard->line[len] = '\n';
	if (guard->too_long) {
		guard->dropped++;
	} else if (len == 5 && !memcmp(guard->line, "renew", 5)) {
		renew(guard);
	} else if (!guard->program && len > 7 && !memcmp(guard->line, "expect ", 7)) {
		expect(guard);
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
		if (pid == guard->waiter) {
			guard->waiter = 0;
			guard->lock.held = !status;
		}
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
		/* This is the second request, so do not wait for slow processes. */
		if (guard->asked && guard->phase != PHASE_RUN && guard->phase < PHASE_KILL)
			enter_phase(guard, PHASE_KILL);
		guard->asked = true;
		begin_end(guard, "signal");
	}
	reap(guard);
}

/* A process that survives SIGKILL may wait for a CPU that a real-time task holds: let it use any CPU. */
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

/* Sends SIGKILL to all processes that still live, and counts each of them once. */
static size_t kill_all(struct guard *guard, pid_t **before, size_t count_before)
{
	pid_t *pids;
	size_t count;

	count = process_tree_list(getpid(), &pids);
	/* Signal the whole group at once, because a process cannot escape this by forking. No other
	 * process can get the group's number before its leader is reaped. */
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
	/* Round up, so that the loop does not spin in the last millisecond. Check a long lease once an
	 * hour. */
	return left > 3600 * NS_PER_S ? 3600000 : (int)((left + 999999) / 1000000);
}

static void wait_for_more(struct guard *guard, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = guard->signals, .events = POLLIN},
		{.fd = guard->input_over || guard->phase != PHASE_RUN ? -1 : STDIN_FILENO, .events = POLLIN},
	};

	if (poll(fds, 2, timeout_ms) < 0)
		return;
	if (fds[0].revents)
		take_signals(guard);
	if (fds[1].revents)
		take_input(guard);
}

/* Returns whether the lease is over. Unread input counts as heard, because the guard itself may have had
 * no CPU for longer than the lease. */
static bool lease_is_over(struct guard *guard)
{
	struct pollfd input = {.fd = guard->input_over ? -1 : STDIN_FILENO, .events = POLLIN};

	if (guard->phase != PHASE_RUN || clock_now_ns(CLOCK_MONOTONIC) < guard->lease_end)
		return false;
	if (poll(&input, 1, 0) <= 0)
		return true;
	take_input(guard);
	return false;
}

static void end_waiter(struct guard *guard)
{
	if (guard->waiter <= 0)
		return;
	kill(guard->waiter, SIGKILL);
	waitpid(guard->waiter, NULL, 0);
	guard->waiter = 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int guard_take_lock(struct guard *guard, void (*tell)(const struct guard *guard, const struct holder *holder))
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), give_up_ns;
	struct holder holder, told = {.pid = -1};
	bool silent = false;
	int error;

	give_up_ns = guard->wait_ns > INT64_MAX / 4 ? INT64_MAX / 2 : now_ns + guard->wait_ns;
	renew(guard);
	while ((error = machine_lock_try(&guard->lock)) == EWOULDBLOCK && guard->phase == PHASE_RUN &&
	       now_ns < give_up_ns) {
		if (!guard->waiter && !guard->lock.held)
			guard->waiter = machine_lock_wait(&guard->lock);
		machine_lock_holder(&guard->lock, &holder);
		if (holder.pid != told.pid || strcmp(holder.run, told.run) ||
		    machine_lock_is_silent(&holder, now_ns) != silent) {
			silent = machine_lock_is_silent(&holder, now_ns);
			told = holder;
			tell(guard, &holder);
		}
		wait_for_more(guard, (int)(least(LOOK_NS, least(give_up_ns, guard->lease_end) - now_ns) /
					   (NS_PER_S / 1000)) +
					     1);
		now_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (lease_is_over(guard))
			begin_end(guard, "lease");
	}
	end_waiter(guard);
	if (!error) {
		renew(guard);
		machine_lock_say(&guard->lock, &guard->self);
	}
	return error;
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

/* Processes that could not be ended may still use the run's settings. */
static void note_remaining(const struct guard *guard, const pid_t *pids, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (pids[i] != guard->program)
			(void)program_note(guard->journal, guard->self.run, pids[i]);
	}
}

void guard_loop(struct guard *guard)
{
	pid_t *targets = NULL;
	size_t count = 0;

	guard->status = 0;
	renew(guard);
	while (guard->phase == PHASE_RUN || !all_gone(guard)) {
		if (guard->phase == PHASE_KILL) {
			count = kill_all(guard, &targets, count);
			if (clock_now_ns(CLOCK_MONOTONIC) >= guard->phase_end) {
				guard->remaining = count;
				note_remaining(guard, targets, count);
				break;
			}
		}
		wait_for_more(guard, wait_ms(guard));
		if (lease_is_over(guard))
			begin_end(guard, "lease");
		else if (guard->phase != PHASE_RUN && guard->phase < PHASE_KILL &&
			 clock_now_ns(CLOCK_MONOTONIC) >= guard->phase_end)
			enter_phase(guard, guard->phase + 1);
	}
	free(targets);
}
