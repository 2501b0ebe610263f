/* SPDX-License-Identifier: MIT */
/*
 * The second stage that the boot ROM loads from the first 256 bytes of the flash (datasheet 2.8.1): it makes the flash readable
 * at 0x10000000 by the plain serial read, command 03h, which every flash chip knows, and goes on to the program.
 * Slow, but the program runs from RAM. tools: uf2.py appends the checksum that the boot ROM wants.
 */
	.syntax unified
	.cpu cortex-m0plus
	.thumb
	.section .boot2, "ax"
	.global boot2
	.thumb_func
boot2:
	ldr	r3, =0x18000000		/* SSI */
	movs	r0, #0
	str	r0, [r3, #0x08]		/* SSIENR: off, so that it may be changed */
	movs	r0, #4
	str	r0, [r3, #0x14]		/* BAUDR: 125 MHz / 4, below the 50 MHz of the slowest chips */
	ldr	r0, =(31 << 16) | (3 << 8)
	str	r0, [r3, #0x00]		/* CTRLR0: frames of 32 bits, EEPROM read */
	movs	r0, #0
	str	r0, [r3, #0x04]		/* CTRLR1: one frame a read */
	ldr	r1, =0x180000f4
	ldr	r0, =(0x03 << 24) | (2 << 8) | (6 << 2)
	str	r0, [r1]		/* SPI_CTRLR0: command 03h of 8 bits, 24 bits of address, one line */
	movs	r0, #1
	str	r0, [r3, #0x08]		/* SSIENR: on */
	ldr	r0, =0x10000100		/* the program's vectors */
	ldr	r1, =0xe000ed08		/* VTOR */
	str	r0, [r1]
	ldr	r1, [r0]
	msr	msp, r1
	ldr	r1, [r0, #4]
	bx	r1
	.ltorg
