// SPDX-License-Identifier: MIT
// Two real-time threads in C++ that break no rule: one runs each 2 ms and wakes the other one, of a lower
// priority, through a condition variable.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <thread>
#include <vector>

static std::mutex lock;
static std::condition_variable changed;
static long steps;

static void consume()
{
	std::vector<long> seen(1000);
	long last = 0;

	for (;;) {
		std::unique_lock<std::mutex> held(lock);
		changed.wait(held, [&] { return steps != last; });
		last = steps;
		held.unlock();
		seen[last % seen.size()] = last;
	}
}

int main()
{
	mlockall(MCL_CURRENT | MCL_FUTURE);
	std::thread consumer(consume);
	const sched_param low = {.sched_priority = 20};

	pthread_setschedparam(consumer.native_handle(), SCHED_FIFO, &low);
	for (auto next = std::chrono::steady_clock::now();; next += std::chrono::milliseconds(2)) {
		std::this_thread::sleep_until(next);
		{
			std::lock_guard<std::mutex> held(lock);
			steps++;
		}
		changed.notify_one();
	}
}
