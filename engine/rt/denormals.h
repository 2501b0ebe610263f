/* SPDX-License-Identifier: MIT */
/* Some processors need many times as long for numbers that are too small for full precision. A computation
 * whose time is measured treats these as 0. */
#ifndef RTGAUGE_DENORMALS_H
#define RTGAUGE_DENORMALS_H

#include <stdint.h>

/* Applies to the calling thread, from now on. */
static inline void denormals_to_zero(void)
{
#if defined(__x86_64__)
	__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* FTZ, DAZ */
#elif defined(__aarch64__)
	uint64_t control;

	__asm__ volatile("mrs %0, fpcr" : "=r"(control));
	__asm__ volatile("msr fpcr, %0" : : "r"(control | UINT64_C(1) << 24));
#elif defined(__arm__) && defined(__ARM_FP)
	uint32_t control;

	__asm__ volatile("vmrs %0, fpscr" : "=r"(control));
	__asm__ volatile("vmsr fpscr, %0" : : "r"(control | UINT32_C(1) << 24));
#elif defined(__riscv) || defined(__loongarch__)
	/* No such mode exists: these processors compute with small numbers at full precision. */
#endif
}

#endif
