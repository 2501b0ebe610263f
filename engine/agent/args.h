/* SPDX-License-Identifier: MIT */
/* Options of the agent, and the error line that a wrong one gives (docs/formats/agent.md). */
#ifndef RTGAUGE_ARGS_H
#define RTGAUGE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct option_spec {
	const char *name; /* with its dashes */
	enum { OPT_FLAG, OPT_TEXT, OPT_INT } kind;
	void *value;	  /* bool *, const char **, int64_t * */
	int64_t min, max; /* OPT_INT only */
};

/*
 * Reads `--name`, `--name VALUE` and `--name=VALUE` up to the first other word or `--`. *rest is then the
 * index of the first word that is no option; *dashes says whether a `--` stood before it.
 * Returns 0, or STATUS_USAGE after it has printed the error line.
 */
int args_parse(int argc, char **argv, const struct option_spec *specs, size_t count, int *rest, bool *dashes);

/* 1 to 128 letters, digits and . _ - : @ +, which need no escaping anywhere. */
bool args_is_id(const char *text);

/* UTF-8 without control characters, at most `max_len` bytes. */
bool args_is_plain(const char *text, size_t max_len);

#define usage_error(...) error_line(STATUS_USAGE, "usage", __VA_ARGS__)

#endif
