/* SPDX-License-Identifier: MIT */
/* Parses gpio:CHIP:LINES[:OPTIONS], without touching a line. */
#ifndef RTGAUGE_GPIO_SPEC_H
#define RTGAUGE_GPIO_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#define GPIO_LINES 4
#define GPIO_TEXT 64

enum gpio_bias { GPIO_BIAS_AS_IS, GPIO_BIAS_DISABLED, GPIO_BIAS_PULL_UP, GPIO_BIAS_PULL_DOWN };

struct gpio_spec {
	char chip[GPIO_TEXT];		   /* a path, or a name in /dev */
	char lines[GPIO_LINES][GPIO_TEXT]; /* numbers or names */
	unsigned int line_count;
	enum gpio_bias bias;
	bool active_low;
};

/* Returns false if the text is invalid; *why then says what is wrong. */
bool gpio_spec_parse(const char *rest, struct gpio_spec *spec, const char **why);

#endif
