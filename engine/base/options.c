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
	return usage_error("--%s %.100s: not one of its choices; see --help", option->name, text);
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
			return usage_error("--%s %.100s: allowed is %lld to %lld", option->name, text,
					   (long long)option->min, (long long)option->max);
		*(int64_t *)option->value = number;
		return 0;
	}
	case OPTION_CHOICE:
		return choose(option, text);
	case OPTION_TEXT:
		if (!*text && !option->may_be_empty)
			return usage_error("--%s needs a value that is not empty", option->name);
		*(const char **)option->value = text;
		return 0;
	case OPTION_CPUS:
		if (!cpuset_parse(option->value, text) || !cpuset_count(option->value))
			return usage_error("--%s %.100s: not a CPU list such as 0-3,6", option->name, text);
		return 0;
	case OPTION_FLAG:
		break;
	}
	return usage_error("--%s takes no value", option->name);
}

static void print_help(const struct option_entry *table, size_t count, const char *operands, const char *verb)
{
	printf("usage: rtgauge-engine %s%s%s\n", verb, count ? " [OPTIONS]" : "", operands);
	for (size_t i = 0; i < count; i++) {
		printf("  --%-20s %s", table[i].name, table[i].help);
		for (int c = 0; table[i].kind == OPTION_CHOICE && table[i].choices[c]; c++)
			printf("%s%s", c ? "|" : ": ", table[i].choices[c]);
		putchar('\n');
	}
}

static const struct option_entry *find(const struct option_entry *table, size_t count, const char *name,
				       size_t len)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(table[i].name) == len && !strncmp(table[i].name, name, len))
			return &table[i];
	}
	return NULL;
}

int options_parse_operands(const struct option_entry *table, size_t count, const char *operands, int argc,
			   char **argv, int *rest, bool *dashes)
{
	int i = 1;

	*rest = argc;
	*dashes = false;
	while (i < argc && argv[i][0] == '-' && argv[i][1] && !*dashes) {
		const char *word = argv[i++], *name = word + 2, *value = strchr(word, '=');
		size_t len = value ? (size_t)(value - word) : strlen(word);
		const struct option_entry *option =
			len > 2 && word[1] == '-' ? find(table, count, name, len - 2) : NULL;
		int status;

		if (!strcmp(word, "--")) {
			*dashes = true;
			break;
		}
		if (!strcmp(word, "--help")) {
			print_help(table, count, operands, argv[0]);
			return -1;
		}
		if (!option)
			return usage_error("unknown option %.*s; see --help", len > 100 ? 100 : (int)len,
					   word);
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

int options_parse(const struct option_entry *table, size_t count, int argc, char **argv)
{
	bool dashes;
	int rest, status = options_parse_operands(table, count, "", argc, argv, &rest, &dashes);

	if (!status && (dashes || rest < argc))
		return usage_error("'%.100s' is not an option; see --help", argv[dashes ? rest - 1 : rest]);
	return status;
}

const char *options_value(int argc, char **argv, const char *name)
{
	size_t len = strlen(name);
	const char *value = NULL;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *word = argv[i];

		if (strncmp(word, "--", 2) || strncmp(word + 2, name, len))
			continue;
		if (word[len + 2] == '=')
			value = word + len + 3;
		else if (!word[len + 2] && i + 1 < argc)
			value = argv[i + 1];
	}
	return value;
}

void options_json(const struct option_entry *table, size_t count, struct json *j)
{
	char text[8192];

	json_open(j, "parameters", '{');
	for (size_t i = 0; i < count; i++) {
		const struct option_entry *option = &table[i];
		char name[64] = "";

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
