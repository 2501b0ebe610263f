/* SPDX-License-Identifier: MIT */
/* Compares a share with a percentage without rounding. */
#ifndef RTGAUGE_PERCENT_H
#define RTGAUGE_PERCENT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether `part` is less than `percent` % of `whole`. Each product must fit into 63 bits. */
static inline bool percent_is_below(int64_t part, int64_t whole, int64_t percent)
{
	return part * 100 < whole * percent;
}

/* Returns whether `part` is more than `percent` % of `whole`; see `percent_is_below`. */
static inline bool percent_is_above(int64_t part, int64_t whole, int64_t percent)
{
	return part * 100 > whole * percent;
}

#endif
