// SPDX-License-Identifier: MIT
#include "verbs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const struct verb *verbs[VERBS_MAX + 1];

static bool comes_before(const struct verb *a, const struct verb *b)
{
	return a->kind != b->kind ? a->kind < b->kind : strcmp(a->name, b->name) < 0;
}

void verb_register(const struct verb *verb)
{
	size_t place = 0;

	if (verbs[VERBS_MAX - 1])
		abort();
	while (verbs[place] && comes_before(verbs[place], verb))
		place++;
	memmove(verbs + place + 1, verbs + place, (VERBS_MAX - place) * sizeof(verbs[0]));
	verbs[place] = verb;
}
