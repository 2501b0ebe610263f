// SPDX-License-Identifier: MIT
#include "base/samples_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define LOST_OFFSET 48
#define FLAG_TIMED 1

struct header {
	char magic[8];
	uint32_t length, series;
	int32_t cpu;
	uint32_t flags;
	int64_t interval_ns, start_ns, warm_up_ns, lost, duration_ns;
};

_Static_assert(sizeof(struct header) == 64, "the header is 64 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the file is little-endian, and so are the machines we know");

FILE *samples_open(const char *folder, unsigned int series)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/samples-%u.i64", folder, series) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return fopen(path, "wxe");
}

void samples_begin(const struct series *s)
{
	struct header header = {
		.magic = {'r', 't', 'g', 'a', 'u', 'g', 'e', 1},
		.length = sizeof(header),
		.series = s->id,
		.cpu = s->cpu,
		.flags = s->timed ? FLAG_TIMED : 0,
		.interval_ns = s->timed ? 0 : s->interval_ns,
		.start_ns = s->start_ns,
		.warm_up_ns = s->warm_up_count * s->interval_ns,
		.duration_ns = s->measured_ns == INT64_MAX ? 0 : s->measured_ns,
	};

	fwrite(&header, sizeof(header), 1, s->samples);
	fflush(s->samples);
}

bool samples_close(struct series *s)
{
	int64_t absent = s->lost + s->impossible;
	bool ok = !fflush(s->samples) && !ferror(s->samples);

	ok &= pwrite(fileno(s->samples), &absent, sizeof(absent), LOST_OFFSET) == (ssize_t)sizeof(absent);
	ok &= !fclose(s->samples);
	s->samples = NULL;
	return ok;
}
