// SPDX-License-Identifier: MIT
#include "agent/setting.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/setting_kind.h"
#include "base/cpuset.h"

static const struct setting_kind *const named[] = {&setting_thread, &setting_group,  &setting_trace,
						   &setting_point,  &setting_module, &setting_ethtool,
						   &setting_timer,  &setting_resctrl};

/* Returns NULL if no kind of setting has this name. */
static const struct setting_kind *kind_of(const char *name, bool is_volatile)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (named[i]->is(name))
			return named[i];
	}
	if (name[0] != '/')
		return NULL;
	if (!is_volatile)
		return &setting_disk_file;
	return setting_gravity.is(name) ? &setting_gravity : &setting_kernel_file;
}

bool setting_is_name(const char *name)
{
	return kind_of(name, false);
}

bool setting_is_volatile(const char *name)
{
	static const char *const trees[] = {"/proc/", "/sys/", "/dev/", "/run/"};
	char *real = name[0] == '/' ? realpath(name, NULL) : NULL;
	const char *place = real ? real : name;
	bool found = name[0] != '/';

	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++)
		found |= !strncmp(place, trees[i], strlen(trees[i]));
	free(real);
	return found;
}

int setting_read(const char *name, bool is_volatile, char **value)
{
	const struct setting_kind *kind = kind_of(name, is_volatile);
	int error = kind ? kind->read(name, value) : EINVAL;

	if (error)
		*value = NULL;
	return error;
}

int setting_write(const char *name, bool is_volatile, const char *value)
{
	const struct setting_kind *kind = kind_of(name, is_volatile);

	return kind ? kind->write(name, value) : EINVAL;
}

/* Trims the text, and replaces each run of spaces inside with one space. malloc'ed. */
static char *tidy(const char *text)
{
	char *result = malloc(strlen(text) + 1), *to = result;

	if (!result)
		return NULL;
	for (; *text; text++) {
		if (!isspace((unsigned char)*text))
			*to++ = *text;
		else if (to > result && to[-1] != ' ')
			*to++ = ' ';
	}
	if (to > result && to[-1] == ' ')
		to--;
	*to = '\0';
	return result;
}

/* "0x00,0000000F" -> "f": removes leading zeros, and the commas before groups of eight digits. In place;
 * NULL: not a mask. */
static char *mask(char *text)
{
	char *from = text, *to = text;

	if (from[0] == '0' && (from[1] == 'x' || from[1] == 'X'))
		from += 2;
	if (!*from)
		return NULL;
	for (; *from; from++) {
		if (*from == ',') {
			if (from == text || strcspn(from + 1, ",") != 8)
				return NULL;
		} else if (!isxdigit((unsigned char)*from)) {
			return NULL;
		} else if (to > text || *from != '0') {
			*to++ = (char)tolower((unsigned char)*from);
		}
	}
	*to = '\0';
	return text;
}

/* Returns 1 or 0, or -1 if it is neither. */
static int yes_or_no(const char *text)
{
	if (!*text || text[1])
		return -1;
	return strchr("Yy1", *text) ? 1 : strchr("Nn0", *text) ? 0 : -1;
}

bool setting_same(const char *a, const char *b)
{
	static struct cpuset cpus_a, cpus_b;
	char *x = tidy(a), *y = tidy(b);
	bool same = false;

	if (!x || !y)
		goto out;
	same = !strcmp(x, y) || (yes_or_no(x) >= 0 && yes_or_no(x) == yes_or_no(y));
	if (!same && cpuset_parse(&cpus_a, x) && cpuset_parse(&cpus_b, y))
		same = !memcmp(&cpus_a, &cpus_b, sizeof(cpus_a));
	if (!same && mask(x) && mask(y))
		same = !strcmp(x, y);
out:
	free(x);
	free(y);
	return same;
}
