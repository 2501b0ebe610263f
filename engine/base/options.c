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
	return error_line(STATUS_USAGE, "usage", "--%s %.100s: not one of its choices; see --help",
			  option->name, text);
}

static int assign(const struct option_entry *option, const char *text)
{
	switch (option->kind) {
	case OPTION_INT: {
		int64_t number;

		if (!options_int(text, &number))
			return error_line(STATUS_USAGE, "usage", "--%s %.100s: not a whole number",
					  option->name, text);
		if (number > option->max && option->min == INT64_MIN)
			return error_line(STATUS_USAGE, "usage", "--%s %.100s: allowed is %lld at the most",
					  option->name, text, (long long)option->max);
		if (number < option->min || number > option->max)
			return error_line(STATUS_USAGE, "usage", "--%s %.100s: allowed is %lld to %lld",
					  option->name, text, (long long)option->min, (long long)option->max);
		*(int64_t *)option->value = number;
		return 0;
	}
	case OPTION_CHOICE:
		return choose(option, text);
	case OPTION_TEXT:
		if (!*text)
			return error_line(STATUS_USAGE, "usage", "--%s needs a value that is not empty",
					  option->name);
		*(const char **)option->value = text;
		return 0;
	case OPTION_CPUS:
		if (!cpuset_parse(option->value, text) || !cpuset_count(option->value))
			return error_line(STATUS_USAGE, "usage", "--%s %.100s: not a CPU list such as 0-3,6",
					  option->name, text);
		return 0;
	case OPTION_FLAG:
		break;
	}
	return error_line(STATUS_USAGE, "usage", "--%s takes no value", option->name);
}

static void print_help(const struct option_entry *table, size_t count, const char *verb)
{
	printf("usage: rtgauge-engine %s [OPTIONS]\n", verb);
	for (size_t i = 0; i < count; i++) {
		printf("  --%-20s %s", table[i].name, table[i].help);
		for (int c = 0; table[i].kind == OPTION_CHOICE && table[i].choices[c]; c++)
			printf("%s%s", c ? "|" : ": ", table[i].choices[c]);
		putchar('\n');
	}
}

int options_parse(const struct option_entry *table, size_t count, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct option_entry *option = NULL;
		const char *name = argv[i], *value;
		size_t len;
		int status;

		if (!strcmp(name, "--help")) {
			print_help(table, count, argv[0]);
			return -1;
		}
		if (strncmp(name, "--", 2))
			return error_line(STATUS_USAGE, "usage", "'%.100s' is not an option; see --help",
					  name);
		name += 2;
		value = strchr(name, '=');
		len = value ? (size_t)(value - name) : strlen(name);
		for (size_t o = 0; o < count; o++) {
			if (strlen(table[o].name) == len && !strncmp(table[o].name, name, len))
				option = &table[o];
		}
		if (!option)
			return error_line(STATUS_USAGE, "usage", "unknown option --%.*s; see --help",
					  (int)len, name);
		if (option->kind == OPTION_FLAG && !value) {
			*(bool *)option->value = true;
			continue;
		}
		if (value)
			value++;
		else if (i + 1 < argc)
			value = argv[++i];
		else
			return error_line(STATUS_USAGE, "usage", "--%s needs a value", option->name);
		status = assign(option, value);
		if (status)
			return status;
	}
	return 0;
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
