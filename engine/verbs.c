// SPDX-License-Identifier: MIT
#include "verbs.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const struct verb *verbs;

static bool comes_before(const struct verb *a, const struct verb *b)
{
	return a->kind != b->kind ? a->kind < b->kind : strcmp(a->name, b->name) < 0;
}

void verb_register(struct verb *verb)
{
	static struct verb *first;
	struct verb **place = &first;

	while (*place && comes_before(*place, verb))
		place = &(*place)->next;
	verb->next = *place;
	*place = verb;
	verbs = first;
}
