/* SPDX-License-Identifier: MIT */
/* The vectors and what comes before main: the program into RAM, zeroes. */
	.syntax unified
	.cpu cortex-m0plus
	.thumb

	.macro	table
	.word	stack_top
	.word	reset
	.word	halt			/* NMI */
	.word	halt			/* HardFault */
	.rept	12
	.word	halt
	.endr
	.rept	32
	.word	wake			/* every interrupt */
	.endr
	.endm

	/* One for the second stage, one in RAM: once the flash chip has been asked for its id it cannot be read. */
	.section .vectors, "a"
	table
	.section .ram_vectors, "a"
	.global	vectors
vectors:
	table

	.section .reset, "ax"
	.global reset
	.thumb_func
	.type	reset, %function
reset:
	ldr	r0, =ram_start
	ldr	r1, =ram_end
	ldr	r2, =ram_image
1:	cmp	r0, r1
	bhs	2f
	ldmia	r2!, {r3}
	stmia	r0!, {r3}
	b	1b
2:	ldr	r0, =bss_start
	ldr	r1, =bss_end
	movs	r2, #0
3:	cmp	r0, r1
	bhs	4f
	stmia	r0!, {r2}
	b	3b
4:	ldr	r0, =0xe000ed08		/* VTOR */
	ldr	r1, =vectors
	str	r1, [r0]
	ldr	r0, =main
	blx	r0
	.ltorg
	.text
	.thumb_func
	.type	halt, %function
halt:
	b	halt

	/* An interrupt only wakes: it masks itself, and the main loop sees what there is to do. */
	.thumb_func
	.global wake
	.type	wake, %function
wake:
	mrs	r0, ipsr
	subs	r0, #16
	movs	r1, #1
	lsls	r1, r0
	ldr	r2, =0xe000e180		/* NVIC_ICER */
	str	r1, [r2]
	bx	lr
	.ltorg
