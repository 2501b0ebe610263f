// SPDX-License-Identifier: MIT
/* Texts from outside (CPU lists, numbers, bytes for JSON) and any sequence of samples. The first byte
 * selects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/json.h"
#include "base/options.h"
#include "base/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cpu_list(const char *text)
{
	static struct cpuset set, back;
	static char out[65536];

	if (!cpuset_parse(&set, text))
		return;
	if (!cpuset_parse(&back, cpuset_format(&set, out, sizeof(out))) || memcmp(&set, &back, sizeof(set)))
		abort();
}

static void number(const char *text)
{
	int64_t value;
	char out[32];

	if (!options_int(text, &value))
		return;
	snprintf(out, sizeof(out), "%lld", (long long)value);
	if (strtoll(text, NULL, 10) != value || !strpbrk(out, "0123456789"))
		abort();
}

/* The output has no control byte, no bare quote inside, and is UTF-8 throughout. */
static void json_text(const char *text, size_t len)
{
	char *out;
	size_t size;
	struct json j;

	json_start(&j, open_memstream(&out, &size));
	json_strn(&j, NULL, text, len);
	fclose(j.out);
	if (size < 2 || out[0] != '"' || out[size - 1] != '"')
		abort();
	for (size_t i = 1; i < size - 1;) {
		size_t n = json_utf8(out + i, size - 1 - i);

		if (!n || (unsigned char)out[i] < 0x20 || out[i] == '"')
			abort();
		i += out[i] == '\\' ? 2 : n;
	}
	free(out);
}

/* Samples at random lengths; every activation must be accounted for once. */
static void samples(const uint8_t *data, size_t size)
{
	static struct series s;
	struct json j;
	char *out;
	size_t out_size;
	int64_t fed = 0;

	if (size < 4)
		return;
	s = (struct series){.cpu = -1,
			    .interval_ns = 1000 + data[0] * INT64_C(9000000),
			    .start_ns = data[1],
			    .warm_up_count = data[2]};
	s.total_count = s.warm_up_count + 1 + data[3];
	s.measured_ns = (1 + data[3]) * s.interval_ns;
	json_start(&j, open_memstream(&out, &out_size));
	series_begin(&s);
	for (size_t i = 4; i + 1 < size && fed < s.total_count; i += 2) {
		int64_t value = (int64_t)data[i] << (data[i + 1] % 30), over = 1;

		if (data[i + 1] > 240) {
			over = 1 + data[i] % 7;
			if (over > s.total_count - fed)
				over = s.total_count - fed;
			value = SAMPLE_LOST(over);
		} else if (data[i + 1] > 230) {
			value = SAMPLE_IMPOSSIBLE;
		} else {
			over += series_missed_after(value, s.interval_ns);
		}
		series_feed(&s, value, &j);
		fed = over > s.total_count - fed ? s.total_count : fed + over;
	}
	series_end(&s, fed < s.total_count, &j);
	series_free(&s);
	fclose(j.out);
	free(out);
	if (s.position != fed ||
	    s.total.count + s.missed + s.warm_up_done + s.warm_up_missed + s.lost + s.impossible != fed)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		cpu_list(text);
		break;
	case 1:
		number(text);
		break;
	case 2:
		json_text(text, size - 1);
		break;
	default:
		samples(data + 1, size - 1);
	}
	free(text);
	return 0;
}
