/* SPDX-License-Identifier: MIT */
/* Names of the kernel's functions whose addresses are in trace events, by /proc/kallsyms. */
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
	uint64_t *base; /* of the function that it is in; 0: none is known */
	char (*name)[SYMBOL_NAME_MAX];
};

/* Adds an address that is looked for, once; as many as there is room for. */
void symbols_want(struct symbols *symbols, uint64_t address);

/* Reads lines as /proc/kallsyms has them, once: what is not a function's is passed over. Takes memory for the
 * names, which is not given back; false: there is none. */
bool symbols_read(struct symbols *symbols, FILE *lines);

/* The address of a function in such lines, the first of that name; 0: there is none. */
uint64_t symbols_find(FILE *lines, const char *name);

/* An object: address (0x...) -> name, or name+0xOFFSET, of those that are known. */
void symbols_json(const struct symbols *symbols, const char *key, struct json *j);

#endif
