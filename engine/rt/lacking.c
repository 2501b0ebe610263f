// SPDX-License-Identifier: MIT
#include "rt/lacking.h"

#include <string.h>

#include "base/error.h"

int lacking_probe(const char *name, const char *const *probes, const struct verb *verb)
{
	for (; *probes; probes++) {
		if (!strcmp(*probes, verb->name))
			return 0;
	}
	return error_lacks(STATUS_USAGE, "runtime", verb->name, "leave --rt out", "%s does not run on %s",
			   verb->name, name);
}

static const char *chosen(const struct option_entry *entry)
{
	if (entry->kind == OPTION_CHOICE)
		return entry->choices[*(const int *)entry->value];
	if (entry->kind == OPTION_TEXT)
		return *(const char *const *)entry->value;
	return entry->kind == OPTION_FLAG && *(const bool *)entry->value ? "on" : NULL;
}

static int refuse(const char *name, const struct lacking *lacking, const char *choice)
{
	if (lacking->written)
		return error_lacks(STATUS_USAGE, "runtime", lacking->written,
				   "leave this option out, or leave --rt out", "%s has no %s", name,
				   lacking->written);
	return error_lacks(STATUS_USAGE, "runtime", choice, "choose another value, or leave --rt out",
			   "%s has no --%s %s", name, lacking->option, choice);
}

int lacking_choice(const char *name, const struct lacking *lacking, const char *verb,
		   const struct option_entry *table)
{
	const struct option_entry *option;
	struct options_walk walk;

	for (; lacking->option; lacking++) {
		if (lacking->verb && strcmp(lacking->verb, verb) != 0)
			continue;
		options_walk_begin(&walk, table);
		while ((option = options_next(&walk))) {
			const char *choice = chosen(option);

			if (choice && !strcmp(lacking->option, option->name) &&
			    (!lacking->choice || !strcmp(lacking->choice, choice)))
				return refuse(name, lacking, choice);
		}
	}
	return 0;
}
