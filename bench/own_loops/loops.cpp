// SPDX-License-Identifier: MIT
/* Loops as people write them in C++, with its standard library's clocks and waits. */
#include "cycle_log.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <sys/prctl.h>

using namespace std::chrono;

static int64_t ns(steady_clock::time_point time)
{
	return duration_cast<nanoseconds>(time.time_since_epoch()).count();
}

/* The library calls the kernel only if time is left. */
static void loop_sleep_until()
{
	for (auto due = steady_clock::now();;) {
		due += nanoseconds(options.period_ns);
		bool late = steady_clock::now() >= due;

		std::this_thread::sleep_until(due);
		begins(ns(due), late ? CAUGHT_UP : RUN);
		work();
		ends();
	}
}

static void loop_wait_until()
{
	std::mutex mutex;
	std::condition_variable condition;
	std::unique_lock<std::mutex> lock(mutex);

	for (auto due = steady_clock::now();;) {
		due += nanoseconds(options.period_ns);
		condition.wait_until(lock, due, [] { return false; });
		begins(ns(due), RUN);
		work();
		ends();
	}
}

static std::atomic<int> held{0};

static void hold()
{
	struct sched_param param {
	};

	sched_setscheduler(0, SCHED_OTHER, &param);
	prctl(PR_SET_NAME, "holder");
	for (;;) {
		held = 1;
		std::this_thread::sleep_for(3ms);
		held = 0;
		held.notify_all();
		std::this_thread::sleep_for(47ms);
	}
}

/* In its cycle, it waits until another thread clears a flag. */
static void loop_atomic_wait()
{
	std::thread(hold).detach();
	for (auto due = steady_clock::now();;) {
		due += nanoseconds(options.period_ns);
		bool late = steady_clock::now() >= due;

		std::this_thread::sleep_until(due);
		begins(ns(due), late ? CAUGHT_UP : RUN);
		work();
		held.wait(1);
		ends();
	}
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	prctl(PR_SET_NAME, options.kind);
	be_real_time();
	puts("ready");
	fflush(stdout);
	if (!strcmp(options.kind, "c++-sleep-until"))
		loop_sleep_until();
	if (!strcmp(options.kind, "c++-wait-until"))
		loop_wait_until();
	if (!strcmp(options.kind, "c++-atomic-wait"))
		loop_atomic_wait();
	return 2;
}
