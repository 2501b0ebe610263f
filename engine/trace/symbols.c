// SPDX-License-Identifier: MIT
#include "trace/symbols.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LINE_LEN 1024
#define FUNCTION_MAX 0x100000U /* an address farther from a function's beginning is in no function */

/* The place of an address in ascending order. */
static unsigned int place_of(const struct symbols *symbols, uint64_t address)
{
	unsigned int low = 0, high = symbols->count;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (symbols->address[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void symbols_want(struct symbols *symbols, uint64_t address)
{
	unsigned int at = place_of(symbols, address);

	if (!address || symbols->count == SYMBOLS_MAX ||
	    (at < symbols->count && symbols->address[at] == address))
		return;
	memmove(&symbols->address[at + 1], &symbols->address[at],
		(symbols->count - at) * sizeof(symbols->address[0]));
	symbols->address[at] = address;
	symbols->count++;
}

/* Parses a line of /proc/kallsyms, "ADDRESS TYPE NAME[ [MODULE]]", cut after its name. Returns false if it
 * is not a function's. sscanf would add 120 KB to a static program. */
static bool parse(char *line, uint64_t *base, const char **name)
{
	char *end;

	*base = strtoull(line, &end, 16);
	if (end == line || !*base || end[0] != ' ' || !end[1] || !strchr("tTwW", end[1]) || end[2] != ' ')
		return false;
	*name = end + 3;
	end[3 + strcspn(end + 3, " \t\n")] = '\0';
	return **name;
}

/* The line's function begins at or below the next address in order. Larger addresses get this function at
   the end. */
static void look_at(struct symbols *symbols, uint64_t base, const char *name)
{
	unsigned int at = place_of(symbols, base);

	if (at == symbols->count || base < symbols->base[at])
		return;
	symbols->base[at] = base;
	snprintf(symbols->name[at], SYMBOL_NAME_MAX, "%s", name);
}

bool symbols_read(struct symbols *symbols, FILE *lines)
{
	char line[LINE_LEN];
	const char *name;
	uint64_t base;

	symbols->base = calloc(symbols->count, sizeof(*symbols->base) + sizeof(*symbols->name));
	if (!symbols->base)
		return false;
	symbols->name = (void *)(symbols->base + symbols->count);
	while (symbols->count && fgets(line, sizeof(line), lines)) {
		if (parse(line, &base, &name))
			look_at(symbols, base, name);
	}
	for (unsigned int i = 1; i < symbols->count; i++) {
		if (symbols->base[i] < symbols->base[i - 1]) {
			symbols->base[i] = symbols->base[i - 1];
			memcpy(symbols->name[i], symbols->name[i - 1], SYMBOL_NAME_MAX);
		}
	}
	return true;
}

uint64_t symbols_find(FILE *lines, const char *wanted)
{
	char line[LINE_LEN];
	const char *name;
	uint64_t base;

	while (fgets(line, sizeof(line), lines)) {
		if (parse(line, &base, &name) && !strcmp(name, wanted))
			return base;
	}
	return 0;
}

uint64_t symbols_address(const char *name)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	uint64_t address = file ? symbols_find(file, name) : 0;

	if (file)
		fclose(file);
	return address;
}

void symbols_json(const struct symbols *symbols, const char *key, struct json *j)
{
	json_open(j, key, '{');
	for (unsigned int i = 0; i < symbols->count; i++) {
		uint64_t offset = symbols->address[i] - symbols->base[i];
		char address[24], name[SYMBOL_NAME_MAX + 24];

		if (!symbols->base[i] || offset > FUNCTION_MAX)
			continue;
		snprintf(address, sizeof(address), "0x%" PRIx64, symbols->address[i]);
		if (offset)
			snprintf(name, sizeof(name), "%s+0x%" PRIx64, symbols->name[i], offset);
		else
			snprintf(name, sizeof(name), "%s", symbols->name[i]);
		json_str(j, address, name);
	}
	json_close(j, '}');
}
