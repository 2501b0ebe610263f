/* SPDX-License-Identifier: MIT */
/* Names of the kernel's functions whose addresses are in trace events, from /proc/kallsyms. */
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
	uint64_t *base; /* of the function that contains it; 0: unknown */
	char (*name)[SYMBOL_NAME_MAX];
};

/* Adds an address to look up, once; ignored if there is no room. */
void symbols_want(struct symbols *symbols, uint64_t address);

/* Reads lines of /proc/kallsyms, once, and skips lines that are not functions. Allocates memory for the
 * names, which is not freed; returns false if there is none. */
bool symbols_read(struct symbols *symbols, FILE *lines);

/* Returns the address of the first function of this name in such lines; 0: there is none. */
uint64_t symbols_find(FILE *lines, const char *name);

/* Writes an object: address (0x...) -> name, or name+0xOFFSET, of the known ones. */
void symbols_json(const struct symbols *symbols, const char *key, struct json *j);

#endif
