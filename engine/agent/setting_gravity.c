// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_error.h"
#include "agent/setting_file.h"
#include "agent/setting_kind.h"

static bool is_clock(const char *name)
{
	static const char clock[] = "/xenomai/clock/coreclk";
	size_t len = strlen(name);

	return len >= sizeof(clock) && !strcmp(name + len - (sizeof(clock) - 1), clock);
}

/* Returns it malloc'ed; NULL if the text does not begin with a gravity. */
static char *gravity(const char *text)
{
	static const char *const words[] = {"gravity: irq=", " kernel=", " user="};
	long long ns[3];
	char *value, *end;

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		size_t len = strlen(words[i]);

		if (strncmp(text, words[i], len))
			return NULL;
		ns[i] = strtoll(text + len, &end, 10);
		if (end == text + len)
			return NULL;
		text = end;
	}
	return asprintf(&value, "%lldi %lldk %lldu", ns[0], ns[1], ns[2]) < 0 ? NULL : value;
}

static int read_gravity(const char *path, char **value)
{
	char *text;
	int error = setting_file_text(path, &text);

	*value = NULL;
	if (error)
		return error;
	*value = gravity(text);
	free(text);
	return *value ? 0 : AGENT_MULTI_LINE;
}

static int write_gravity(const char *path, const char *value)
{
	return setting_kernel_file.write(path, value);
}

const struct setting_kind setting_gravity = {is_clock, read_gravity, write_gravity};
