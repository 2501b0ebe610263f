// SPDX-License-Identifier: MIT
#include "signal/path.h"

#include <string.h>

#include "base/error.h"

const char *const path_role_names[] = {"master", "slave", "both", NULL};

static const struct path_kind *const kinds[] = {&path_eventfd,	&path_pipe, &path_socketpair,
						&path_loop_udp, &path_udp,  &path_gpio};

/* The kind that the text begins with; *rest is what follows it. */
static const struct path_kind *kind_of(const char *text, const char **rest)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i]->name);

		if (strncmp(text, kinds[i]->name, len))
			continue;
		*rest = text + len;
		if (**rest == ':')
			(*rest)++;
		else if (**rest)
			continue;
		return kinds[i];
	}
	return NULL;
}

int path_open(const char *text, enum path_role role, bool both_ways, struct path_end *ends)
{
	const char *rest = "";
	const struct path_kind *kind = kind_of(text, &rest);

	if (!kind)
		return error_line(
			STATUS_USAGE, "path",
			"--path %.100s: there are loop:eventfd, loop:pipe, loop:socketpair, loop:udp, udp:HOST:PORT and gpio:CHIP:LINES",
			text);
	ends[PATH_MASTER] = ends[PATH_SLAVE] = (struct path_end){.kind = kind, .in = -1, .out = -1};
	ends[PATH_SLAVE].slave = true;
	return kind->open(rest, role, both_ways, ends);
}
