/* SPDX-License-Identifier: MIT */
/* The instructions of the PIO that the two programs are made of (datasheet 3.4). */
#ifndef PIO_H
#define PIO_H

#define PIO_JMP(target) (0x0000u | (target))
#define PIO_JMP_X_DECREMENT(target) (0x0040u | (target))
#define PIO_JMP_PIN(target) (0x00c0u | (target))
#define PIO_OUT_PINS(bits) (0x6000u | (bits))
#define PIO_OUT_X(bits) (0x6020u | (bits))
#define PIO_PUSH_NOBLOCK 0x8000u
#define PIO_PULL_BLOCK 0x80a0u
#define PIO_MOV_ISR_NOT_X 0xa0c9u
#define PIO_MOV_X_NOT_NULL 0xa02bu
#define PIO_SET_PINS(value) (0xe000u | (value))
#define PIO_SET_PINDIRS(value) (0xe080u | (value))

#endif
