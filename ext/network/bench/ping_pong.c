// SPDX-License-Identifier: MIT
/*
 * The least program that measures a round trip through a network, and the least far end: FIFO, locked memory,
 * a blocking receive, nothing else. What `rtgauge probe path` is held against.
 *   ping_pong send CPU ADDRESS PORT INTERVAL_NS COUNT   prints each round trip in ns; port 0: ICMP echo
 *   ping_pong answer CPU PORT                           returns each datagram; prints a line when it is ready
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(3);
}

static void settle(const char *cpu)
{
	struct sched_param priority = {.sched_priority = 98};
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET((size_t)atoi(cpu), &own);
	if (sched_setaffinity(0, sizeof(own), &own) || sched_setscheduler(0, SCHED_FIFO, &priority) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE))
		fail("ping_pong: cannot choose the CPU, set the priority or lock the memory");
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int answer(const char *port)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
	int end = socket(AF_INET, SOCK_DGRAM, 0);

	if (end < 0 || bind(end, (struct sockaddr *)&own, sizeof(own)))
		fail("ping_pong: cannot listen on the port");
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		char data[2000];
		struct sockaddr_in from;
		socklen_t length = sizeof(from);
		ssize_t size = recvfrom(end, data, sizeof(data), 0, (struct sockaddr *)&from, &length);

		if (size < 0 || sendto(end, data, (size_t)size, 0, (struct sockaddr *)&from, length) < 0)
			fail("ping_pong: cannot answer");
	}
}

static int measure(const char *address, int port, int64_t interval_ns, long count)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	const struct timeval patience = {.tv_sec = 1};
	int end = socket(AF_INET, SOCK_DGRAM, port ? 0 : IPPROTO_ICMP);
	int64_t *trips = calloc((size_t)count, sizeof(*trips)), due_ns;
	unsigned char request[24] = {8}, reply[2000]; /* 8: echo request */

	if (!trips || end < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(end, (struct sockaddr *)&to, sizeof(to)))
		fail("ping_pong: cannot connect to the far end");
	due_ns = now_ns() + 20000000;
	for (long i = 0; i < count; i++) {
		const struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
		int64_t sent_ns;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		sent_ns = now_ns();
		if (send(end, request, sizeof(request), 0) < 0 || recv(end, reply, sizeof(reply), 0) < 0)
			fail("ping_pong: the far end does not answer");
		trips[i] = now_ns() - sent_ns;
		do
			due_ns += interval_ns;
		while (due_ns < now_ns());
	}
	for (long i = 0; i < count; i++)
		printf("%lld\n", (long long)trips[i]);
	return 0;
}

int main(int argc, char **argv)
{
	int wish = 0, dma = open("/dev/cpu_dma_latency", O_RDWR);

	if (dma >= 0 && write(dma, &wish, sizeof(wish)) < 0)
		perror("ping_pong: cannot write to /dev/cpu_dma_latency");
	if (argc < 4)
		return 2;
	settle(argv[2]);
	if (!strcmp(argv[1], "answer"))
		return answer(argv[3]);
	return argc == 7 ? measure(argv[3], atoi(argv[4]), atoll(argv[5]), atol(argv[6])) : 2;
}
