// SPDX-License-Identifier: MIT
#include "ext/recorder/engine/age.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/file.h"
#include "base/clock.h"

#define NAME "age.json"
#define BYTES_MAX 4096
#define SET_NS (INT64_C(1577836800) * NS_PER_S) /* 2020; a clock before it was not set */

static int64_t value_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	long long value = at ? strtoll(at + strlen(key), NULL, 10) : 0;

	return value > 0 && value < INT64_MAX / 4 ? value : 0;
}

static char *text_of(const struct spool *spool)
{
	int fd = openat(spool->folder, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct bytes bytes = {0};

	if (fd < 0)
		return NULL;
	if (file_read_fd(fd, BYTES_MAX, &bytes))
		bytes.data = NULL;
	close(fd);
	return bytes.data;
}

/* Returns how long ago a text was written; 0: unknown. */
static int64_t passed_since(const char *text, const char *boot, int64_t boottime_ns)
{
	int64_t realtime_ns = value_of(text, "\"realtime_ns\":"), passed_ns = 0;

	if (strstr(text, boot))
		passed_ns = boottime_ns - value_of(text, "\"boottime_ns\":");
	else if (realtime_ns >= SET_NS)
		passed_ns = clock_now_ns(CLOCK_REALTIME) - realtime_ns;
	return passed_ns > 0 ? passed_ns : 0;
}

void age_read(struct age *age, const struct spool *spool, const char *boot)
{
	char *text = text_of(spool);

	*age = (struct age){.at_ns = clock_now_ns(CLOCK_BOOTTIME)};
	if (!text)
		return;
	age->known_ns = value_of(text, "\"age_ns\":") + passed_since(text, boot, age->at_ns);
	free(text);
}

int64_t age_now(const struct age *age)
{
	return age->known_ns + clock_now_ns(CLOCK_BOOTTIME) - age->at_ns;
}

void age_write(struct age *age, struct spool *spool, const char *boot)
{
	char text[300];

	age->known_ns = age_now(age);
	age->at_ns = clock_now_ns(CLOCK_BOOTTIME);
	snprintf(text, sizeof(text),
		 "{\"age_ns\":%lld,\"boot_id\":\"%s\",\"boottime_ns\":%lld,\"realtime_ns\":%lld}",
		 (long long)age->known_ns, boot, (long long)age->at_ns,
		 (long long)clock_now_ns(CLOCK_REALTIME));
	if (spool_put(spool, NAME, text))
		spool->counts.lines_refused++;
}
