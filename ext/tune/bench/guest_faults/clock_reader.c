// SPDX-License-Identifier: MIT
/* Reads the clock 1000 times every 10 ms. */
#include <time.h>

#define PERIOD_NS 10000000
#define SECOND_NS 1000000000

int main(void)
{
	struct timespec release, now;

	clock_gettime(CLOCK_MONOTONIC, &release);
	for (;;) {
		release.tv_nsec += PERIOD_NS;
		if (release.tv_nsec >= SECOND_NS) {
			release.tv_nsec -= SECOND_NS;
			release.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &release, 0);
		for (int i = 0; i < 1000; i++)
			clock_gettime(CLOCK_MONOTONIC, &now);
	}
}
