// SPDX-License-Identifier: MIT
#include "base/verbs.h"

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
	size_t place = VERBS_MAX - 1;

	if (verbs[place])
		abort();
	for (; place && (!verbs[place - 1] || comes_before(verb, verbs[place - 1])); place--)
		verbs[place] = verbs[place - 1];
	verbs[place] = verb;
}
