/* SPDX-License-Identifier: MIT */
/* Functions that the compiler calls by itself. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int value, size_t size);

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	uint8_t *target = to;
	const uint8_t *source = from;

	while (size-- > 0)
		*target++ = *source++;
	return to;
}

void *memset(void *to, int value, size_t size)
{
	uint8_t *target = to;

	for (; size > 0 && (uintptr_t)target % 4u != 0; size--)
		*target++ = (uint8_t)value;
	for (; size >= 4; size -= 4, target += 4)
		*(uint32_t *)(void *)target = (uint8_t)value * 0x01010101u;
	while (size-- > 0)
		*target++ = (uint8_t)value;
	return to;
}
