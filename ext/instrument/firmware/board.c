/* SPDX-License-Identifier: MIT */
#include "board.h"

#include "rp2040.h"

#define WAKING_INTERRUPTS ((1u << IRQ_TIMER_0) | (1u << IRQ_USBCTRL) | (1u << IRQ_IO_BANK0))

static uint32_t watched_pins;

static void unreset(uint32_t blocks)
{
	ALIAS_CLR(RESETS_RESET) = blocks;
	while ((REGISTER(RESETS_RESET_DONE) & blocks) != blocks)
		;
}

static void pll_start(uint32_t base, uint32_t feedback, uint32_t divider_1, uint32_t divider_2)
{
	REGISTER(base + PLL_CS) = 1;
	REGISTER(base + PLL_FBDIV_INT) = feedback;
	ALIAS_CLR(base + PLL_PWR) = PLL_PWR_PD | PLL_PWR_VCOPD;
	while (!(REGISTER(base + PLL_CS) & PLL_CS_LOCK))
		;
	REGISTER(base + PLL_PRIM) = (divider_1 << 16) | (divider_2 << 12);
	ALIAS_CLR(base + PLL_PWR) = PLL_PWR_POSTDIVPD;
}

static void clocks_start(void)
{
	REGISTER(CLOCKS_CLK_SYS_RESUS_CTRL) = 0;
	REGISTER(XOSC_STARTUP) = 47; /* about 1 ms of the 12 MHz, in units of 256 cycles */
	REGISTER(XOSC_CTRL) = XOSC_CTRL_ENABLE_1_15MHZ;
	while (!(REGISTER(XOSC_STATUS) & XOSC_STATUS_STABLE))
		;

	/* Away from the PLLs before they are reset, as after a warm start. */
	ALIAS_CLR(CLOCKS_CLK_SYS_CTRL) = 1;
	while (REGISTER(CLOCKS_CLK_SYS_SELECTED) != 1)
		;
	ALIAS_SET(RESETS_RESET) = RESETS_PLL_SYS | RESETS_PLL_USB;
	unreset(RESETS_PLL_SYS | RESETS_PLL_USB);
	pll_start(PLL_SYS_BASE, 125, 6, 2); /* 12 MHz * 125 / 6 / 2 = 125 MHz */
	pll_start(PLL_USB_BASE, 100, 5, 5); /* 12 MHz * 100 / 5 / 5 = 48 MHz */

	REGISTER(CLOCKS_CLK_REF_CTRL) = 2; /* the crystal */
	while (REGISTER(CLOCKS_CLK_REF_SELECTED) != 1u << 2)
		;
	REGISTER(CLOCKS_CLK_SYS_DIV) = 1u << 8;
	REGISTER(CLOCKS_CLK_SYS_CTRL) = 0; /* auxiliary source: PLL_SYS */
	ALIAS_SET(CLOCKS_CLK_SYS_CTRL) = 1;
	while (REGISTER(CLOCKS_CLK_SYS_SELECTED) != 1u << 1)
		;
	REGISTER(CLOCKS_CLK_USB_DIV) = 1u << 8;
	REGISTER(CLOCKS_CLK_USB_CTRL) = 1u << 11;	     /* enabled, PLL_USB */
	REGISTER(WATCHDOG_TICK) = WATCHDOG_TICK_ENABLE | 12; /* the timer's microsecond */
}

void board_start(void)
{
	uint32_t blocks = RESETS_IO_BANK0 | RESETS_PADS_BANK0 | RESETS_TIMER | RESETS_DMA | RESETS_PIO0 |
			  RESETS_PIO1 | RESETS_USBCTRL;

	clocks_start();
	ALIAS_SET(RESETS_RESET) = blocks;
	unreset(blocks);
	REGISTER(TIMER_INTE) = 1;
	REGISTER(IO_BANK0_GPIO_CTRL(LED_PIN)) = GPIO_FUNCTION_SIO;
	REGISTER(SIO_GPIO_OE_SET) = 1u << LED_PIN;
	board_led(false);
}

void board_led(bool on)
{
	REGISTER(on ? SIO_GPIO_OUT_SET : SIO_GPIO_OUT_CLR) = 1u << LED_PIN;
}

/* Command 4Bh, four bytes of nothing, then the id. All 13 bytes fit into the FIFO, so that chip select does
 * not fall between them; the flash cannot be read meanwhile, and is not: everything runs in RAM. */
void board_unique_id(uint8_t id[8])
{
	REGISTER(SSI_SSIENR) = 0;
	REGISTER(SSI_BAUDR) = 64;
	REGISTER(SSI_CTRLR0) = 7u << 16; /* frames of 8 bits, both ways */
	REGISTER(SSI_SER) = 1;
	REGISTER(SSI_SSIENR) = 1;
	REGISTER(SSI_DR0) = 0x4b;
	for (unsigned i = 0; i < 12; i++)
		REGISTER(SSI_DR0) = 0;
	uint64_t begin = board_time_us();
	while (REGISTER(SSI_RXFLR) < 13 && board_time_us() - begin < 1000)
		;
	for (unsigned i = 0; i < 13; i++) {
		uint8_t byte = (uint8_t)REGISTER(SSI_DR0);
		if (i >= 5)
			id[i - 5] = byte;
	}
	REGISTER(SSI_SSIENR) = 0;
}

void board_bootloader(void)
{
	/* The boot ROM finds its functions by two letters (datasheet 2.8.3). */
	typedef void *(*lookup_function)(uint16_t * table, uint32_t code);
	typedef void (*reset_to_usb_boot_function)(uint32_t activity_pins, uint32_t disabled_interfaces);

	uint16_t *table = (uint16_t *)(uintptr_t) * (volatile uint16_t *)0x14;
	lookup_function lookup = (lookup_function)(uintptr_t) * (volatile uint16_t *)0x18;
	reset_to_usb_boot_function reset_to_usb_boot =
		(reset_to_usb_boot_function)lookup(table, 'U' | ('B' << 8));
	reset_to_usb_boot(0, 0);
	for (;;)
		;
}

uint64_t board_time_us(void)
{
	uint32_t high = REGISTER(TIMER_TIMERAWH);

	for (;;) {
		uint32_t low = REGISTER(TIMER_TIMERAWL);
		uint32_t again = REGISTER(TIMER_TIMERAWH);

		if (again == high)
			return ((uint64_t)high << 32) | low;
		high = again;
	}
}

void board_wake_at(uint64_t time_us)
{
	/* Cleared before it is set: an interrupt before the core sleeps still wakes it. */
	REGISTER(TIMER_INTR) = 1;
	REGISTER(TIMER_ALARM0) = (uint32_t)time_us;
	/* An alarm in the past would fire in 71 minutes. */
	if (board_time_us() >= time_us)
		REGISTER(TIMER_ALARM0) = (uint32_t)board_time_us() + 2;
}

void board_sleep(bool (*pending)(void))
{
	__asm__ volatile("cpsid i" ::: "memory");
	for (unsigned pin = 0; watched_pins >> pin != 0; pin++)
		if (watched_pins & (1u << pin))
			REGISTER(IO_BANK0_INTR(pin)) = IO_BANK0_EDGES(pin);
	NVIC_ISER = WAKING_INTERRUPTS;
	/* The rings have everything from before the flags were cleared, and `pending` sees it. */
	if (!pending())
		__asm__ volatile("wfi" ::: "memory");
	__asm__ volatile("cpsie i" ::: "memory");
}

void board_pin_input(unsigned pin, enum pull pull)
{
	REGISTER(PADS_BANK0_GPIO(pin)) = PADS_IE | PADS_SCHMITT | (pull == PULL_UP ? PADS_PUE : 0) |
					 (pull == PULL_DOWN ? PADS_PDE : 0);
	REGISTER(IO_BANK0_GPIO_CTRL(pin)) = GPIO_FUNCTION_NULL;
}

/* The input stays on: the capture reads the pad itself. */
void board_pin_output(unsigned pin)
{
	REGISTER(PADS_BANK0_GPIO(pin)) = PADS_IE | PADS_SCHMITT | PADS_DRIVE_4MA | PADS_SLEWFAST;
	REGISTER(IO_BANK0_GPIO_CTRL(pin)) = GPIO_FUNCTION_PIO1;
}

void board_pin_release(unsigned pin)
{
	board_pin_watch(pin, false);
	board_pin_input(pin, PULL_DOWN);
}

void board_pin_watch(unsigned pin, bool watched)
{
	if (watched) {
		watched_pins |= 1u << pin;
		ALIAS_SET(IO_BANK0_PROC0_INTE(pin)) = IO_BANK0_EDGES(pin);
	} else {
		watched_pins &= ~(1u << pin);
		ALIAS_CLR(IO_BANK0_PROC0_INTE(pin)) = IO_BANK0_EDGES(pin);
	}
}
