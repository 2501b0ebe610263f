// SPDX-License-Identifier: MIT
/* Picks the verb. */
#include <stdio.h>
#include <string.h>

#include "verbs.h"

static const struct verb verbs[] = {
	{"read", verb_read}, {"set", verb_set}, {"restore", verb_restore}, {"guard", verb_guard},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "usage: rtgauge-engine wakeup|calibrate|read|set|restore|guard|version [OPTIONS]\n");
	return 2;
}
