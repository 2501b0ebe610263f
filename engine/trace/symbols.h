/* SPDX-License-Identifier: MIT */
/* Finds the names of the kernel functions whose addresses are in trace events, from /proc/kallsyms. */
#ifndef RTGAUGE_TRACE_SYMBOLS_H
#define RTGAUGE_TRACE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

#define SYMBOLS_MAX 8192
#define SYMBOL_NAME_MAX 96

struct symbols {
	unsigned int count;
	uint64_t address[SYMBOLS_MAX];
	uint64_t *base; /* beginning of the function that contains it; 0: unknown */
	char (*name)[SYMBOL_NAME_MAX];
};

/* Adds an address to look up, once. It is ignored if there is no room. */
void symbols_want(struct symbols *symbols, uint64_t address);

/* Reads the lines of /proc/kallsyms, once, and skips lines that are not functions. The memory for names is
 * not freed. Returns false if there is no memory. */
bool symbols_read(struct symbols *symbols, FILE *lines);

/* Returns the address of the first function with this name in such lines; 0: there is none. */
uint64_t symbols_find(FILE *lines, const char *name);

/* The same for /proc/kallsyms. */
uint64_t symbols_address(const char *name);

/* Writes an object from known addresses (0x...) to name, or name+0xOFFSET. */
void symbols_json(const struct symbols *symbols, const char *key, struct json *j);

#endif
