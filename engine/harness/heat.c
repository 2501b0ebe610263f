// SPDX-License-Identifier: MIT
#include "harness/heat.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stream.h"

#define ZONES 64
#define SLOW_NS (NS_PER_S / 1000)
#define SLOW_TIMES 3 /* in a row: another task may run for so long while a zone is read */

static struct zone {
	int file; /* 0: there is no such zone */
	int slow; /* how many of its last readings were */
	long max_millicelsius;
	long readings;
} zones[ZONES];

static char folder[PATH_MAX];
static bool measuring;
static int64_t next_ns;

static int open_in_zone(int number, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/thermal_zone%d/%s", folder, number, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

void heat_begin(const char *where, bool while_measuring)
{
	snprintf(folder, sizeof(folder), "%s", where);
	measuring = while_measuring;
	next_ns = 0;
	for (int i = 0; i < ZONES; i++) {
		int file = open_in_zone(i, "temp");

		zones[i] = (struct zone){.file = file > 0 ? file : 0};
	}
}

/* A zone that is disabled cannot be read. */
static void read_zone(struct zone *zone)
{
	char text[32], *end;
	ssize_t len = pread(zone->file, text, sizeof(text) - 1, 0);
	long value;

	text[len > 0 ? len : 0] = '\0';
	value = strtol(text, &end, 10);
	if (end == text)
		return;
	if (!zone->readings++ || value > zone->max_millicelsius)
		zone->max_millicelsius = value;
}

void heat_look(int64_t now_ns)
{
	if (!measuring || now_ns < next_ns)
		return;
	next_ns = now_ns + NS_PER_S;
	for (struct zone *zone = zones; zone < zones + ZONES; zone++) {
		int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC);

		if (!zone->file || zone->slow == SLOW_TIMES)
			continue;
		read_zone(zone);
		zone->slow = clock_now_ns(CLOCK_MONOTONIC) - begin_ns >= SLOW_NS ? zone->slow + 1 : 0;
	}
}

static void write_name(int number, struct json *j)
{
	char name[96];
	int len = snprintf(name, sizeof(name), "thermal_zone%d", number), file = open_in_zone(number, "type");
	ssize_t more = file >= 0 ? read(file, name + len + 1, sizeof(name) - (size_t)len - 2) : 0;

	if (more > 1) {
		name[len] = ' ';
		name[len + 1 + more] = '\0';
		name[strcspn(name, "\n")] = '\0';
	}
	json_str(j, "zone", name);
	if (file >= 0)
		close(file);
}

void heat_write(struct json *j)
{
	for (int i = 0; i < ZONES; i++) {
		struct zone *zone = &zones[i];

		if (!zone->file)
			continue;
		read_zone(zone);
		close(zone->file);
		zone->file = 0;
		if (!zone->readings)
			continue;
		stream_result(j, "temperature");
		write_name(i, j);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "max_millicelsius", zone->max_millicelsius);
		json_int(j, "readings", zone->readings);
		stream_result_end(j);
	}
}
