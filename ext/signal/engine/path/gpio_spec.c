// SPDX-License-Identifier: MIT
#include "ext/signal/engine/path/gpio_spec.h"

#include <string.h>

/* Copies up to one of the bytes in `until`; returns the place after it. NULL: the part is empty or too
   long. */
static const char *word(const char *from, const char *until, char to[GPIO_TEXT])
{
	size_t len = strcspn(from, until);

	if (!len || len >= GPIO_TEXT)
		return NULL;
	memcpy(to, from, len);
	to[len] = '\0';
	return from + len;
}

static bool take_option(const char *name, struct gpio_spec *spec)
{
	static const char *const biases[] = {
		[GPIO_BIAS_AS_IS] = "bias-as-is",
		[GPIO_BIAS_DISABLED] = "bias-disabled",
		[GPIO_BIAS_PULL_UP] = "pull-up",
		[GPIO_BIAS_PULL_DOWN] = "pull-down",
	};

	for (unsigned int i = 0; i < sizeof(biases) / sizeof(biases[0]); i++) {
		if (!strcmp(name, biases[i])) {
			spec->bias = (enum gpio_bias)i;
			return true;
		}
	}
	spec->active_low |= !strcmp(name, "active-low");
	return !strcmp(name, "active-low");
}

bool gpio_spec_parse(const char *rest, struct gpio_spec *spec, const char **why)
{
	char name[GPIO_TEXT];

	*spec = (struct gpio_spec){0};
	*why = "write gpio:CHIP:LINES, such as gpio:/dev/gpiochip0:17,27";
	rest = word(rest, ":", spec->chip);
	if (!rest || *rest != ':')
		return false;
	do {
		rest++;
		if (spec->line_count == GPIO_LINES) {
			*why = "it has more than 4 lines";
			return false;
		}
		rest = word(rest, ",:", spec->lines[spec->line_count++]);
		if (!rest)
			return false;
	} while (*rest == ',');
	while (*rest) {
		rest = word(rest + 1, ",:", name);
		if (!rest || *rest == ':' || !take_option(name, spec)) {
			*why = "its options are bias-as-is, bias-disabled, pull-up, pull-down and active-low";
			return false;
		}
	}
	return true;
}
