// SPDX-License-Identifier: MIT
/* A line of the journal: an accepted line is exactly what would be written again. The checksum is
 * corrected, so that the rest is reached. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t crc32(const uint8_t *data, size_t size)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < size; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = malloc(size + 32), *copy, *again;
	struct entry entry;
	size_t len, again_len;

	memcpy(line, data, size);
	snprintf(line + size, 32, ",\"crc\":\"%08" PRIx32 "\"}", size > 11 ? crc32(data + 11, size - 11) : 0);
	len = size + strlen(line + size);
	copy = malloc(len + 1);
	memcpy(copy, line, len + 1);
	if (journal_parse(line, len, &entry)) {
		again = journal_line(&entry, &again_len);
		if (again_len != len + 1 || memcmp(again, copy, len))
			abort();
		free(again);
	}
	free(line);
	free(copy);
	return 0;
}
