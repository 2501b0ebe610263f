// SPDX-License-Identifier: MIT
#include "base/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpuset.h"
#include "base/error.h"

bool options_int(const char *text, int64_t *value)
{
	char *end;
	long long number;

	if (!(*text == '-' ? text[1] >= '0' && text[1] <= '9' : *text >= '0' && *text <= '9'))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (errno || *end)
		return false;
	*value = number;
	return true;
}

static int choose(const struct option_entry *option, const char *text)
{
	for (int i = 0; option->choices[i]; i++) {
		if (!strcmp(option->choices[i], text)) {
			*(int *)option->value = i;
			return 0;
		}
	}
	return usage_error("--%s %.100s is not one of its choices; see --help", option->name, text);
}

static int assign(const struct option_entry *option, const char *text)
{
	switch (option->kind) {
	case OPTION_INT: {
		int64_t number;

		if (!options_int(text, &number))
			return usage_error("--%s %.100s: not a whole number", option->name, text);
		if (number > option->max && option->min == INT64_MIN)
			return usage_error("--%s %.100s: at most %lld is allowed", option->name, text,
					   (long long)option->max);
		if (number < option->min || number > option->max)
			return usage_error("--%s %.100s: must be %lld to %lld", option->name, text,
					   (long long)option->min, (long long)option->max);
		*(int64_t *)option->value = number;
		return 0;
	}
	case OPTION_CHOICE:
		return choose(option, text);
	case OPTION_TEXT:
		if (!*text && !option->may_be_empty)
			return usage_error("give --%s a value that is not empty", option->name);
		*(const char **)option->value = text;
		return 0;
	case OPTION_CPUS:
		if (!cpuset_parse(option->value, text) || !cpuset_count(option->value))
			return usage_error("--%s %.100s is not a CPU list such as 0-3,6", option->name, text);
		return 0;
	case OPTION_FLAG:
		break;
	}
	return usage_error("--%s takes no value", option->name);
}

static void replace(struct option_entry *option, const struct option_entry *by)
{
	if (by->name)
		option->name = by->name;
	if (by->value)
		option->value = by->value;
	if (by->help)
		option->help = by->help;
	if (by->min)
		option->min = by->min;
	if (by->choices)
		option->choices = by->choices;
	if (by->only.choice)
		option->only = by->only;
}

void options_walk_begin(struct options_walk *walk, const struct option_entry *table)
{
	walk->at[0] = table;
	walk->depth = table ? 0 : -1;
}

const struct option_entry *options_next(struct options_walk *walk)
{
	while (walk->depth >= 0) {
		const struct option_entry *entry = walk->at[walk->depth];

		if (entry->shared) {
			walk->at[++walk->depth] = entry->shared;
			continue;
		}
		if (entry->name) {
			walk->option = *entry;
			for (int i = walk->depth - 1; i >= 0; i--)
				replace(&walk->option, walk->at[i]);
			walk->at[walk->depth]++;
			return &walk->option;
		}
		if (walk->depth-- > 0)
			walk->at[walk->depth]++;
	}
	return NULL;
}

static bool exists(const struct option_entry *option)
{
	return !option->only.choice || *option->only.choice == option->only.value;
}

/* Finds the option whose choice decides whether this option exists. */
static struct option_entry decisive(const struct option_entry *table, const struct option_entry *option)
{
	const struct option_entry *other;
	struct options_walk walk;

	options_walk_begin(&walk, table);
	do {
		other = options_next(&walk);
	} while (other->value != option->only.choice);
	return *other;
}

/* Prints the default value. A number without a default must be given. */
static void print_default(const struct option_entry *option)
{
	int64_t number = option->kind == OPTION_INT ? *(const int64_t *)option->value : 0;
	const char *text = option->kind == OPTION_TEXT	   ? *(const char *const *)option->value
			   : option->kind == OPTION_CHOICE ? option->choices[*(const int *)option->value]
							   : NULL;

	if (option->kind == OPTION_INT && number >= option->min && number <= option->max)
		printf(" (%lld)", (long long)number);
	if (text && *text)
		printf(" (%s)", text);
}

static void print_help(const struct option_entry *table, const char *operands, const char *verb)
{
	const struct option_entry *option;
	struct options_walk walk;

	printf("usage: rtgauge-engine %s%s%s\n", verb, table ? " [OPTIONS]" : "", operands);
	options_walk_begin(&walk, table);
	while ((option = options_next(&walk))) {
		printf("  --%-20s %s", option->name, option->help);
		for (int c = 0; option->kind == OPTION_CHOICE && option->choices[c]; c++)
			printf("%s%s", c ? "|" : ": ", option->choices[c]);
		print_default(option);
		if (option->only.choice) {
			struct option_entry other = decisive(table, option);

			printf("; only with --%s %s", other.name, other.choices[option->only.value]);
		}
		putchar('\n');
	}
}

/* Finds the option of this name in `walk`; NULL: there is none. */
static const struct option_entry *find(struct options_walk *walk, const struct option_entry *table,
				       const char *name, size_t len)
{
	const struct option_entry *option;

	options_walk_begin(walk, table);
	while ((option = options_next(walk))) {
		if (strlen(option->name) == len && !strncmp(option->name, name, len))
			break;
	}
	return option;
}

/* Reads the words once or, after all were read, refuses an option that does not exist with the given
 * choices. */
static int read_words(const struct option_entry *table, const char *operands, int argc, char **argv,
		      bool again, int *rest, bool *dashes)
{
	int i = 1;

	*rest = argc;
	*dashes = false;
	while (i < argc && argv[i][0] == '-' && argv[i][1] && !*dashes) {
		const char *word = argv[i++], *name = word + 2, *value = strchr(word, '=');
		size_t len = value ? (size_t)(value - word) : strlen(word);
		struct options_walk walk;
		const struct option_entry *option =
			len > 2 && word[1] == '-' ? find(&walk, table, name, len - 2) : NULL;
		int status;

		if (!strcmp(word, "--")) {
			*dashes = true;
			break;
		}
		if (!strcmp(word, "--help")) {
			print_help(table, operands, argv[0]);
			return -1;
		}
		if (!option)
			return usage_error("unknown option %.*s; see --help", len > 100 ? 100 : (int)len,
					   word);
		if (again && !exists(option)) {
			struct option_entry other = decisive(table, option);

			return usage_error("--%s exists only with --%s %s", option->name, other.name,
					   other.choices[option->only.value]);
		}
		if (option->kind == OPTION_FLAG && !value) {
			*(bool *)option->value = true;
			continue;
		}
		if (!value && i == argc)
			return usage_error("--%s needs a value", option->name);
		status = assign(option, value ? value + 1 : argv[i++]);
		if (status)
			return status;
	}
	*rest = i;
	return 0;
}

int options_parse_operands(const struct option_entry *table, const char *operands, int argc, char **argv,
			   int *rest, bool *dashes)
{
	int status = read_words(table, operands, argc, argv, false, rest, dashes);

	return status ? status : read_words(table, operands, argc, argv, true, rest, dashes);
}

int options_parse(const struct option_entry *table, int argc, char **argv)
{
	bool dashes;
	int rest, status = options_parse_operands(table, "", argc, argv, &rest, &dashes);

	if (!status && (dashes || rest < argc))
		return usage_error("'%.100s' is not an option; see --help", argv[dashes ? rest - 1 : rest]);
	return status;
}

void options_json(const struct option_entry *table, struct json *j)
{
	const struct option_entry *option;
	struct options_walk walk;
	char text[8192];

	json_open(j, "parameters", '{');
	options_walk_begin(&walk, table);
	while ((option = options_next(&walk))) {
		char name[64] = "";

		if (!exists(option))
			continue;
		for (size_t c = 0; c < sizeof(name) - 1 && option->name[c]; c++)
			name[c] = option->name[c] == '-' ? '_' : option->name[c];
		switch (option->kind) {
		case OPTION_INT:
			json_int(j, name, *(const int64_t *)option->value);
			break;
		case OPTION_CHOICE:
			json_str(j, name, option->choices[*(const int *)option->value]);
			break;
		case OPTION_TEXT:
			json_str(j, name, *(const char *const *)option->value);
			break;
		case OPTION_CPUS:
			json_str(j, name, cpuset_format(option->value, text, sizeof(text)));
			break;
		case OPTION_FLAG:
			json_bool(j, name, *(const bool *)option->value);
			break;
		}
	}
	json_close(j, '}');
}
