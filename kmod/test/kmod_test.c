// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs rtgauge's kernel modules for the tests in tests/lab. Its arguments are one verb, and then
 * words key=value. It prints each answer on a line, and the tests decide whether the answer is
 * right. Exit status: 0, or 1 with the errno's name on standard error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/gpio.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../rtgauge_kmod.h"

static char **words;

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerrorname_np(errno));
	exit(1);
}

static const char *text(const char *key, const char *otherwise)
{
	size_t length = strlen(key);

	for (char **word = words; *word; word++)
		if (!strncmp(*word, key, length) && (*word)[length] == '=')
			return *word + length + 1;
	return otherwise;
}

static int64_t number(const char *key, int64_t otherwise)
{
	const char *value = text(key, NULL);

	return value ? strtoll(value, NULL, 0) : otherwise;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int open_device(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	return fd;
}

static void ask(int fd, unsigned long request, void *argument, const char *what)
{
	if (ioctl(fd, request, argument))
		fail(what);
}

/* LABEL:OFFSET[:FLAGS] */
static struct rtgauge_line line(const char *key)
{
	struct rtgauge_line line = {0};

	if (sscanf(text(key, ""), "%31[^:]:%u:%u", line.chip, &line.offset, &line.flags) == 1)
		line.offset = 0;
	return line;
}

static int stopped_fd = -1;

static void stop(int number)
{
	(void)number;
	ioctl(stopped_fd, RTGAUGE_IOC_STOP);
}

/* SIGTERM ends the measurement in order, so that its samples are still read. */
static void stop_when_told(int fd)
{
	struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};

	stopped_fd = fd;
	sigaction(SIGTERM, &action, NULL);
}

static void print_sample(const struct rtgauge_sample *sample)
{
	printf("sample %" PRIu64 " %u %u %u %u", (uint64_t)sample->number, sample->cpu,
	       sample->line, sample->from, sample->flags);
	for (unsigned int i = 0; i < RTGAUGE_STAMPS; i++)
		printf(" %" PRId64, (int64_t)sample->time_ns[i]);
	printf("\n");
}

static void print_status(int fd)
{
	struct rtgauge_status status;

	ask(fd, RTGAUGE_IOC_STATUS, &status, "status");
	printf("status state=%u reason=%u samples=%" PRIu64 " missed=%" PRIu64 " lost=%" PRIu64
	       " start=%" PRId64 " end=%" PRId64 " irq=%d thread=%d\n",
	       status.state, status.reason, (uint64_t)status.samples, (uint64_t)status.missed,
	       (uint64_t)status.lost, (int64_t)status.start_ns, (int64_t)status.end_ns, status.irq,
	       status.thread);
	fflush(stdout);
}

static uint32_t state(int fd)
{
	struct rtgauge_status status;

	ask(fd, RTGAUGE_IOC_STATUS, &status, "status");
	return status.state;
}

static void print_by_read(int fd)
{
	struct rtgauge_sample samples[64];
	ssize_t got;

	while ((got = read(fd, samples, sizeof(samples))) > 0)
		for (size_t i = 0; i < (size_t)got / sizeof(samples[0]); i++)
			print_sample(&samples[i]);
	if (got < 0)
		fail("read");
}

static bool print_rings(struct rtgauge_map *map)
{
	bool any = false;

	for (uint32_t i = 0; i < map->rings; i++) {
		struct rtgauge_ring *ring = (void *)((char *)map + map->first + i * map->stride);
		uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		uint64_t tail = ring->tail;

		for (; tail != head; tail++, any = true)
			print_sample(&ring->samples[tail % map->capacity]);
		__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
	}
	return any;
}

static void print_by_map(int fd, struct rtgauge_map *map)
{
	for (;;) {
		bool over = state(fd) != RTGAUGE_STATE_RUNNING;

		if (!print_rings(map) && over)
			break;
		usleep(10000);
	}
}

static struct rtgauge_map *map_rings(int fd)
{
	struct rtgauge_info info;
	struct rtgauge_map *map;

	ask(fd, RTGAUGE_IOC_INFO, &info, "info");
	map = mmap(NULL, info.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail("mmap");
	return map;
}

/*
 * Starts a measurement, prints all samples until it is over or standard input ends, and prints
 * the status.
 */
static int measure(int fd, unsigned long request, void *parameters)
{
	bool mapped = number("map", 0), hold = number("hold", 0);
	uint32_t capacity = number("capacity", 0);
	struct rtgauge_map *map = NULL;

	if (capacity)
		ask(fd, RTGAUGE_IOC_CAPACITY, &capacity, "capacity");
	if (mapped)
		map = map_rings(fd);
	stop_when_told(fd);
	for (int64_t again = number("again", 1); again > 0; again--) {
		ask(fd, request, parameters, "start");
		print_status(fd);
		if (hold) /* reads nothing until it is killed, or told to continue */
			while (getchar() != EOF)
				continue;
		if (number("stop", 0))
			ask(fd, RTGAUGE_IOC_STOP, NULL, "stop");
		if (number("late", 0)) /* reads only after the end */
			while (state(fd) == RTGAUGE_STATE_RUNNING)
				usleep(10000);
		if (mapped)
			print_by_map(fd, map);
		else
			print_by_read(fd);
		print_status(fd);
	}
	close(fd);
	return 0;
}

static int verb_periodic(void)
{
	struct rtgauge_periodic parameters = {
		.abi = number("abi", RTGAUGE_KMOD_ABI),
		.context = number("context", RTGAUGE_CONTEXT_IRQ),
		.period_ns = number("period", 1000000),
		.count = number("count", 0),
		.start_ns = number("start", 0),
		.cpu = number("cpu", 0),
		.priority = number("priority", 0),
		.out = line("out"),
		.reserved = {number("reserved", 0)},
	};

	return measure(open_device(text("device", "rtgauge_periodic")), RTGAUGE_IOC_START_PERIODIC,
		       &parameters);
}

static int verb_response(void)
{
	struct rtgauge_response parameters = {
		.abi = number("abi", RTGAUGE_KMOD_ABI),
		.context = number("context", RTGAUGE_CONTEXT_IRQ),
		.count = number("count", 0),
		.cpu = number("cpu", RTGAUGE_ANY_CPU),
		.irq_cpu = number("irq-cpu", RTGAUGE_ANY_CPU),
		.priority = number("priority", 0),
		.in = line("in"),
		.out = line("out"),
		.interval_min_ns = number("interval-min", 0),
		.interval_max_ns = number("interval-max", 0),
		.seed = number("seed", 0),
		.reserved = {number("reserved", 0)},
	};

	return measure(open_device("rtgauge_response"), RTGAUGE_IOC_START_RESPONSE, &parameters);
}

static int verb_wire(void)
{
	struct rtgauge_wire parameters = {
		.abi = number("abi", RTGAUGE_KMOD_ABI),
		.count = number("count", 0),
		.reserved = {number("reserved", 0)},
	};

	return measure(open_device("rtgauge_wire"), RTGAUGE_IOC_START_WIRE, &parameters);
}

static int verb_info(void)
{
	struct rtgauge_info info;

	ask(open_device(text("device", "rtgauge_wire")), RTGAUGE_IOC_INFO, &info, "info");
	printf("info abi=%u sample_size=%u rings=%u capacity=%u map_size=%" PRIu64 " module=%s\n",
	       info.abi, info.sample_size, info.rings, info.capacity, (uint64_t)info.map_size,
	       info.module);
	return 0;
}

static int verb_join(bool cut)
{
	struct rtgauge_wire_ends ends = {number("a", 0), number("b", 0)};

	ask(open_device("rtgauge_wire"), cut ? RTGAUGE_IOC_CUT : RTGAUGE_IOC_JOIN, &ends,
	    cut ? "cut" : "join");
	return 0;
}

static int verb_line(void)
{
	struct rtgauge_wire_line about = {.offset = number("line", 0)};

	ask(open_device("rtgauge_wire"), RTGAUGE_IOC_LINE, &about, "line");
	printf("line offset=%u peer=%u output=%u level=%u edges=%" PRIu64 " merged=%" PRIu64
	       " ignored=%" PRIu64 "\n",
	       about.offset, about.peer, about.output, about.level, (uint64_t)about.edges,
	       (uint64_t)about.merged, (uint64_t)about.ignored);
	return 0;
}

/* A line of a GPIO chip, through the kernel's character device, as any program would use it. */
static int request_line(unsigned int offset, uint64_t flags)
{
	struct gpio_v2_line_request request = {
		.offsets = {offset},
		.num_lines = 1,
		.consumer = "kmod-test",
		.config.flags = flags,
	};
	char path[32];

	for (unsigned int i = 0; i < 16; i++) {
		struct gpiochip_info info;
		int chip;

		snprintf(path, sizeof(path), "/dev/gpiochip%u", i);
		chip = open(path, O_RDWR | O_CLOEXEC);
		if (chip < 0)
			continue;
		if (!ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, &info) &&
		    !strcmp(info.label, "rtgauge_wire")) {
			ask(chip, GPIO_V2_GET_LINE_IOCTL, &request, "line request");
			close(chip);
			return request.fd;
		}
		close(chip);
	}
	errno = ENODEV;
	fail("rtgauge_wire");
	return -1;
}

/*
 * Toggles `out` and waits for the edge on `in`, `count` times. Prints each edge's id, and the
 * times of setting the line and of the edge.
 */
static int verb_gpio(void)
{
	int out = request_line(number("out", 0), GPIO_V2_LINE_FLAG_OUTPUT);
	int in = request_line(number("in", 1), GPIO_V2_LINE_FLAG_INPUT |
						       GPIO_V2_LINE_FLAG_EDGE_RISING |
						       GPIO_V2_LINE_FLAG_EDGE_FALLING);
	int64_t count = number("count", 10), pause_us = number("pause-us", 0);

	for (int64_t i = 0; i < count; i++) {
		struct gpio_v2_line_values values = {.mask = 1, .bits = !(i & 1)};
		struct pollfd waiting = {.fd = in, .events = POLLIN};
		struct gpio_v2_line_event event;
		int64_t begin = now_ns();

		ask(out, GPIO_V2_LINE_SET_VALUES_IOCTL, &values, "set");
		if (poll(&waiting, 1, 20000) != 1) {
			printf("no-edge %" PRId64 "\n", i);
			return 1;
		}
		if (read(in, &event, sizeof(event)) != sizeof(event))
			fail("read");
		printf("edge %" PRId64 " id=%u sequence=%u set=%" PRId64 " time=%" PRIu64 "\n", i,
		       event.id, event.line_seqno, begin, (uint64_t)event.timestamp_ns);
		if (pause_us)
			usleep(pause_us);
	}
	return 0;
}

/* Holds a line of the chip until standard input ends. */
static int verb_hold_line(void)
{
	request_line(number("line", 0), GPIO_V2_LINE_FLAG_INPUT);
	printf("status held\n");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	return 0;
}

static uint64_t random_state;

static uint64_t draw(void)
{
	/* xorshift64*: the same seed gives the same random values */
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL;
}

static void hostile_ioctl(int fd)
{
	static const unsigned long known[] = {
		RTGAUGE_IOC_INFO,	RTGAUGE_IOC_CAPACITY,	    RTGAUGE_IOC_STATUS,
		RTGAUGE_IOC_STOP,	RTGAUGE_IOC_START_PERIODIC, RTGAUGE_IOC_START_RESPONSE,
		RTGAUGE_IOC_START_WIRE, RTGAUGE_IOC_JOIN,	    RTGAUGE_IOC_CUT,
		RTGAUGE_IOC_LINE,
	};
	unsigned long request = known[draw() % (sizeof(known) / sizeof(known[0]))];
	union {
		uint64_t word[64];
		struct rtgauge_periodic periodic;
		struct rtgauge_response response;
		struct rtgauge_wire wire;
		struct rtgauge_wire_ends ends;
	} argument;
	void *place = &argument;

	for (unsigned int i = 0; i < 64; i++)
		argument.word[i] = draw() & (draw() % 3 ? 0 : draw() % 2 ? 0xff : UINT64_MAX);
	if (draw() % 2)
		argument.periodic.abi = RTGAUGE_KMOD_ABI;
	if (draw() % 4 == 0)
		request = (request & ~0xffUL) | (draw() & 0xff);
	if (draw() % 8 == 0)
		request = (uint32_t)draw();
	/* Nearly valid: these may start, and may change each other's lines. */
	switch (draw() % 8) {
	case 0:
	case 1:
		argument.periodic = (struct rtgauge_periodic){
			.abi = RTGAUGE_KMOD_ABI,
			.context = draw() % 3,
			.period_ns = 10000 + draw() % 10000000,
			.count = draw() % 100,
			.cpu = draw() % 5,
			.priority = draw() % 2 * (draw() % 101),
			.out = {.chip = "rtgauge_wire", .offset = draw() % 10, .flags = draw() % 9},
		};
		request = RTGAUGE_IOC_START_PERIODIC;
		break;
	case 2:
	case 3:
		argument.response = (struct rtgauge_response){
			.abi = RTGAUGE_KMOD_ABI,
			.context = draw() % 5,
			.count = draw() % 100,
			.cpu = (int)(draw() % 6) - 1,
			.irq_cpu = (int)(draw() % 6) - 1,
			.priority = draw() % 2 * (draw() % 101),
			.out = {.chip = "rtgauge_wire", .offset = draw() % 10, .flags = draw() % 9},
		};
		if (draw() % 2) {
			argument.response.in = argument.response.out;
			argument.response.in.offset = draw() % 10;
		} else {
			argument.response.out.chip[0] = '\0';
			argument.response.context = draw() % 2;
			argument.response.cpu = argument.response.context ? draw() % 2 : -1;
			argument.response.irq_cpu = draw() % 2;
			argument.response.priority = argument.response.context * 50;
			argument.response.interval_min_ns = 100000;
			argument.response.interval_max_ns = 100000 + draw() % 1000000;
		}
		request = RTGAUGE_IOC_START_RESPONSE;
		break;
	case 4:
		argument.ends = (struct rtgauge_wire_ends){draw() % 9, draw() % 9};
		request = draw() % 2 ? RTGAUGE_IOC_JOIN : RTGAUGE_IOC_CUT;
		break;
	case 5:
		argument.wire =
			(struct rtgauge_wire){.abi = RTGAUGE_KMOD_ABI, .count = draw() % 20};
		request = RTGAUGE_IOC_START_WIRE;
		break;
	case 6:
		argument.word[0] = 8u << draw() % 8;
		request = RTGAUGE_IOC_CAPACITY;
		break;
	}
	if (draw() % 8 == 0)
		place = (void *)(uintptr_t)draw();
	ioctl(fd, request, place);
}

static char *kept;
static size_t kept_size;

static void hostile_map(int fd)
{
	struct rtgauge_info info;
	size_t size;
	char *map;

	if (ioctl(fd, RTGAUGE_IOC_INFO, &info))
		return;
	size = draw() % 2 ? info.map_size : draw() % (2 * info.map_size);
	map = mmap(NULL, size, PROT_READ | (draw() % 4 ? PROT_WRITE : 0),
		   draw() % 8 ? MAP_SHARED : MAP_PRIVATE, fd,
		   draw() % 3 ? 0 : (off_t)(draw() % 1024 * 4096));
	if (map == MAP_FAILED)
		return;
	if (kept)
		munmap(kept, kept_size);
	kept = map;
	kept_size = size;
	/* The kernel must not trust anything in there. */
	if (size == info.map_size && mprotect(map, size, PROT_READ | PROT_WRITE) == 0)
		for (unsigned int i = 0; i < 64; i++)
			*(uint64_t *)(map + draw() % (size / 8) * 8) = draw();
	if (size == info.map_size)
		for (unsigned int i = 0; i < 1024; i++)
			*(uint64_t *)(map + 8 * i) = draw();
}

/*
 * Makes `count` random calls to one device in each of `processes`, which share its descriptors.
 * Now and then, one of them opens the device anew.
 */
static int verb_hostile(void)
{
	const char *device = text("device", "rtgauge_wire");
	int64_t processes = number("processes", 1);
	bool alone = processes == 1;
	int fd = open_device(device), worst = 0, status;
	char buffer[4096];
	bool child = false;

	random_state = number("seed", 1);
	for (; processes > 1 && !child; processes--) {
		child = !fork();
		random_state += child ? processes : 0;
	}
	for (int64_t i = number("count", 1000); i > 0; i--) {
		switch (draw() % 16) {
		case 0:
			hostile_map(fd);
			break;
		case 1:
			fcntl(fd, F_SETFL, O_NONBLOCK);
			if (read(fd, draw() % 4 ? buffer : (void *)(uintptr_t)draw(),
				 draw() % sizeof(buffer)) < 0)
				errno = 0;
			break;
		case 2:
			if (draw() % 8)
				break;
			/* A mapping keeps the device open. */
			if (kept)
				munmap(kept, kept_size);
			kept = NULL;
			if (!alone)
				break;
			close(fd);
			fd = open_device(device);
			break;
		default:
			hostile_ioctl(fd);
		}
	}
	if (child)
		return 0;
	while (wait(&status) > 0)
		worst |= status;
	printf("calls done\n");
	return worst ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	words = argv + (argc > 1 ? 2 : 1);
	if (!strcmp(verb, "periodic"))
		return verb_periodic();
	if (!strcmp(verb, "response"))
		return verb_response();
	if (!strcmp(verb, "wire"))
		return verb_wire();
	if (!strcmp(verb, "info"))
		return verb_info();
	if (!strcmp(verb, "join") || !strcmp(verb, "cut"))
		return verb_join(!strcmp(verb, "cut"));
	if (!strcmp(verb, "line"))
		return verb_line();
	if (!strcmp(verb, "gpio"))
		return verb_gpio();
	if (!strcmp(verb, "hold-line"))
		return verb_hold_line();
	if (!strcmp(verb, "hostile"))
		return verb_hostile();
	fprintf(stderr, "verbs: periodic, response, wire, info, join, cut, line, gpio, hold-line, "
			"hostile\n");
	return 2;
}
