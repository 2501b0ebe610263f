// SPDX-License-Identifier: MIT
/* Formats and parses one line of the journal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/journal.h"
#include "agent/text.h"
#include "base/json.h"

#define CRC_TAIL 18 /* ,"crc":"01234567"} */

/* The CRC-32 of IEEE 802.3, zlib and gzip. */
static uint32_t crc32(const char *text, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)text[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

char *journal_line(const struct entry *entry, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);
	struct json j;

	if (!out)
		return NULL;
	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_strn(&j, "state", &entry->state, 1);
	json_int(&j, "seq", entry->seq);
	json_str(&j, "owner", entry->held ? "held" : "run");
	json_str(&j, "run", entry->run);
	json_int(&j, "pid", entry->pid);
	json_int(&j, "start", entry->start);
	json_str(&j, "boot", entry->boot);
	json_bool(&j, "volatile", entry->is_volatile);
	json_str(&j, "path", entry->path);
	json_str(&j, "old", entry->old);
	json_str(&j, "wanted", entry->wanted);
	if (!fflush(out))
		fprintf(out, ",\"crc\":\"%08" PRIx32 "\"}\n",
			crc32(text + STATE_AT + 1, *len - STATE_AT - 1));
	if (ferror(out) | fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Accepts a path or a setting's name. A kind that only a newer engine knows is kept, and is not damage. */
static bool is_name(const char *path)
{
	size_t len = strspn(path, "abcdefghijklmnopqrstuvwxyz");

	return path[0] == '/' || (len && path[len] == ':');
}

bool journal_parse(char *line, size_t len, struct entry *entry)
{
	struct scan scan = {.at = line};
	char tail[CRC_TAIL + 1];
	bool held;

	if (len < STATE_AT + 1 + CRC_TAIL || memchr(line, '\0', len))
		return false;
	snprintf(tail, sizeof(tail), ",\"crc\":\"%08" PRIx32 "\"}",
		 crc32(line + STATE_AT + 1, len - CRC_TAIL - STATE_AT - 1));
	if (strcmp(line + len - CRC_TAIL, tail))
		return false;

	*entry = (struct entry){0};
	scan_literal(&scan, "{\"state\":\"");
	if (scan.wrong || !strchr("aso", *scan.at))
		return false;
	entry->state = *scan.at++;
	scan_literal(&scan, "\",\"seq\":");
	entry->seq = scan_int(&scan, 1, INT64_MAX);
	scan_literal(&scan, ",\"owner\":\"");
	held = *scan.at == 'h';
	scan_literal(&scan, held ? "held" : "run");
	entry->held = held;
	scan_literal(&scan, "\",\"run\":");
	entry->run = scan_text(&scan);
	scan_literal(&scan, ",\"pid\":");
	entry->pid = scan_int(&scan, 1, INT32_MAX);
	scan_literal(&scan, ",\"start\":");
	entry->start = scan_int(&scan, 0, INT64_MAX);
	scan_literal(&scan, ",\"boot\":");
	entry->boot = scan_text(&scan);
	scan_literal(&scan, ",\"volatile\":");
	entry->is_volatile = scan_bool(&scan);
	scan_literal(&scan, ",\"path\":");
	entry->path = scan_text(&scan);
	scan_literal(&scan, ",\"old\":");
	entry->old = scan_text(&scan);
	scan_literal(&scan, ",\"wanted\":");
	entry->wanted = scan_text(&scan);
	scan_literal(&scan, tail);
	return !scan.wrong && !*scan.at && is_name(entry->path) && text_is_id(entry->run) &&
	       text_is_id(entry->boot);
}
