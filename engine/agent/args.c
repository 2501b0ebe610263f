// SPDX-License-Identifier: MIT
#include "agent/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/options.h"

bool args_is_id(const char *text)
{
	size_t len = strlen(text);

	return len >= 1 && len <= 128 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:@+") == len;
}

bool args_is_plain(const char *text, size_t max_len)
{
	size_t len = strlen(text);

	if (len > max_len)
		return false;
	while (len) {
		size_t n = json_utf8(text, len);

		if (!n || (unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
		text += n;
		len -= n;
	}
	return true;
}

static const struct option_spec *find(const struct option_spec *specs, size_t count, const char *word,
				      size_t len)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(specs[i].name) == len && !memcmp(specs[i].name, word, len))
			return &specs[i];
	}
	return NULL;
}

static int take(const struct option_spec *spec, const char *text)
{
	int64_t number;

	if (spec->kind == OPT_TEXT) {
		*(const char **)spec->value = text;
		return 0;
	}
	if (!options_int(text, &number) || number < spec->min || number > spec->max)
		return usage_error("%s takes a whole number from %lld to %lld, not '%.100s'", spec->name,
				   (long long)spec->min, (long long)spec->max, text);
	*(int64_t *)spec->value = number;
	return 0;
}

int args_parse(int argc, char **argv, const struct option_spec *specs, size_t count, int *rest, bool *dashes)
{
	int i = 1;

	*dashes = false;
	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		const char *word = argv[i++];
		const char *equals = strchr(word, '=');
		const struct option_spec *spec = find(specs, count, word, strcspn(word, "="));
		int status;

		if (!strcmp(word, "--")) {
			*dashes = true;
			break;
		}
		if (!spec)
			return usage_error("%s has no option '%.100s'", argv[0], word);
		if (spec->kind == OPT_FLAG) {
			if (equals)
				return usage_error("%s takes no value", spec->name);
			*(bool *)spec->value = true;
			continue;
		}
		if (!equals && i == argc)
			return usage_error("%s needs a value", spec->name);
		status = take(spec, equals ? equals + 1 : argv[i++]);
		if (status)
			return status;
	}
	*rest = i;
	return 0;
}
