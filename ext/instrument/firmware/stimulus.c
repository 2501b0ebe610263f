/* SPDX-License-Identifier: MIT */
#include "stimulus.h"

#include "pio.h"
#include "rp2040.h"

/* Cycles of a turn in addition to the loop's, which runs once more than X says. */
#define OVERHEAD_TICKS 4u

static const uint16_t program[] = {
	PIO_PULL_BLOCK,
	PIO_OUT_X(31),
	PIO_JMP_X_DECREMENT(2),
	PIO_OUT_PINS(1),
};
#define PROGRAM_LENGTH (sizeof(program) / sizeof(program[0]))

void stimulus_start(unsigned pin, bool high)
{
	REGISTER(PIO1_BASE + PIO_CTRL) = 0;
	for (unsigned i = 0; i < PROGRAM_LENGTH; i++)
		REGISTER(PIO1_BASE + PIO_INSTR_MEM(i)) = program[i];
	REGISTER(PIO1_BASE + PIO_SM_CLKDIV(0)) = 1u << 16;
	REGISTER(PIO1_BASE + PIO_SM_EXECCTRL(0)) = PIO_EXECCTRL_WRAP(0, PROGRAM_LENGTH - 1);
	/* Changing how the FIFOs are joined empties them. */
	REGISTER(PIO1_BASE + PIO_SM_SHIFTCTRL(0)) = PIO_SHIFTCTRL_OUT_RIGHT | PIO_SHIFTCTRL_FJOIN_TX;
	REGISTER(PIO1_BASE + PIO_SM_SHIFTCTRL(0)) = PIO_SHIFTCTRL_OUT_RIGHT;
	REGISTER(PIO1_BASE + PIO_SM_PINCTRL(0)) = PIO_PINCTRL_OUT(pin, 1) | PIO_PINCTRL_SET(pin, 1);
	REGISTER(PIO1_BASE + PIO_SM_INSTR(0)) = PIO_SET_PINS(high ? 1u : 0u);
	REGISTER(PIO1_BASE + PIO_SM_INSTR(0)) = PIO_SET_PINDIRS(1u);
	REGISTER(PIO1_BASE + PIO_SM_INSTR(0)) = PIO_JMP(0);
	REGISTER(PIO1_BASE + PIO_CTRL) = 1u | PIO_CTRL_SM_RESTART(1u) | PIO_CTRL_CLKDIV_RESTART(1u);
}

void stimulus_stop(void)
{
	REGISTER(PIO1_BASE + PIO_CTRL) = 0;
}

bool stimulus_edge(uint32_t ticks, bool high)
{
	if (REGISTER(PIO1_BASE + PIO_FSTAT) & PIO_FSTAT_TXFULL(0))
		return false;
	REGISTER(PIO1_BASE + PIO_TXF(0)) = (ticks - OVERHEAD_TICKS) | (high ? 1u << 31 : 0u);
	return true;
}
