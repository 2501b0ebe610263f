// SPDX-License-Identifier: MIT
#include "harness/peer_process.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/usage.h"
#include "harness/harness.h"
#include "harness/refusal.h"
#include "rt/policy.h"
#include "rt/runtime.h"

#define READY_NS (5 * NS_PER_S)
#define BUSY_MAX_US 2000000UL /* the longest time that it may run at a real-time policy without sleeping */

static int64_t before; /* its switches to Linux until its measurement began */

/* Its progress, in the first page of the shared memory. */
struct start {
	_Atomic bool ready;
	_Atomic int error;
};

void *peer_process_memory(size_t size)
{
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Only the engine may end it. If both got a signal, it would look as if the peer had died. */
static void leave_signals(void)
{
	static const int theirs[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

	for (size_t i = 0; i < sizeof(theirs) / sizeof(theirs[0]); i++)
		signal(theirs[i], SIG_IGN);
}

/* Returns 0 or an errno. */
static int settle(int cpu)
{
	const struct rlimit busy = {BUSY_MAX_US, 2 * BUSY_MAX_US}, no_core = {0, 0};
	struct cpuset own;
	int error;

	leave_signals();
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_RTTIME, &busy);
	cpuset_clear(&own);
	cpuset_add(&own, (unsigned int)cpu);
	error = cpuset_pin(0, &own);
	if (!error && harness_options.memory_lock)
		error = memory_lock(); /* a lock is not inherited */
	if (!error && runtime_join())
		error = EIO; /* it has reported why */
	if (!error)
		error = policy_set((enum policy)harness_options.policy, (int)harness_options.priority);
	return error ? error : runtime_thread_begin();
}

static bool wait_ready(const struct start *start)
{
	int64_t give_up_ns = clock_now_ns(CLOCK_MONOTONIC) + READY_NS;

	while (!atomic_load(&start->ready)) {
		if (clock_now_ns(CLOCK_MONOTONIC) > give_up_ns)
			return false;
		clock_pause_ns(NS_PER_S / 1000);
	}
	return true;
}

int peer_process_start(struct peer_process *peer, int cpu, int (*prepare)(void *arg), void (*work)(void *arg),
		       void *arg)
{
	struct start *start = peer_process_memory(sizeof(*start));
	pid_t engine = getpid();

	if (!start)
		return harness_no_memory();
	peer->cpu = cpu;
	peer->started = true;
	peer->pid = fork();
	if (peer->pid < 0)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot start the second process: %s",
				  strerror(errno));
	if (!peer->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != engine)
			_exit(0);
		int error = settle(cpu);

		atomic_store(&start->error, error ? error : prepare(arg));
		atomic_store(&start->ready, true);
		if (!atomic_load(&start->error))
			work(arg);
		_exit(0);
	}
	if (runtime_join())
		return STATUS_CANNOT_MEASURE;
	if (!wait_ready(start)) {
		peer_process_end(peer);
		return refuse_held_cpu(cpu, "the slave", "another --slave-cpu");
	}
	if (atomic_load(&start->error))
		return error_line(STATUS_CANNOT_MEASURE, "internal", "the slave cannot run on CPU %d: %s",
				  cpu, strerror(atomic_load(&start->error)));
	/* After the fork, all our pages are marked for copying at the next write. Cause the copying now,
	 * not during the measurement. */
	if (harness_options.memory_lock)
		memory_lock();
	return 0;
}

bool peer_process_lives(struct peer_process *peer)
{
	int status;

	if (!peer->pid || waitpid(peer->pid, &status, WNOHANG) != peer->pid)
		return peer->pid != 0;
	peer->pid = 0;
	if (WIFSIGNALED(status))
		snprintf(peer->died, sizeof(peer->died), "was killed by signal %d%s", WTERMSIG(status),
			 WTERMSIG(status) == SIGXCPU ? " (it ran for 2 s without sleeping)" : "");
	else
		snprintf(peer->died, sizeof(peer->died), "ended with status %d", WEXITSTATUS(status));
	return false;
}

void peer_process_go(struct peer_process *peer)
{
	before = usage_mode_switches(peer->pid);
	peer->switches = -1;
}

static void count_switches(struct peer_process *peer)
{
	int64_t switches = usage_mode_switches(peer->pid);

	peer->switches = before < 0 || switches < 0 ? -1 : switches - before;
}

void peer_process_end(struct peer_process *peer)
{
	if (!peer->pid)
		return;
	count_switches(peer);
	syscall(SYS_kill, peer->pid, SIGKILL); /* Linux's signal, because a co-kernel has its own kill */
	while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
		;
	peer->pid = 0;
}
