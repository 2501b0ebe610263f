/* SPDX-License-Identifier: MIT */
/* The registers of the RP2040 that this firmware touches, by their names in the datasheet. */
#ifndef RP2040_H
#define RP2040_H

#include <stdint.h>

#define REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* Every peripheral register has three aliases that change single bits in one write (datasheet 2.1.2). */
#define ALIAS_XOR(address) REGISTER((address) + 0x1000u)
#define ALIAS_SET(address) REGISTER((address) + 0x2000u)
#define ALIAS_CLR(address) REGISTER((address) + 0x3000u)

/* 2.14 Resets */
#define RESETS_BASE 0x4000c000u
#define RESETS_RESET (RESETS_BASE + 0x0u)
#define RESETS_RESET_DONE (RESETS_BASE + 0x8u)
#define RESETS_DMA (1u << 2)
#define RESETS_IO_BANK0 (1u << 5)
#define RESETS_PADS_BANK0 (1u << 8)
#define RESETS_PIO0 (1u << 10)
#define RESETS_PIO1 (1u << 11)
#define RESETS_PLL_SYS (1u << 12)
#define RESETS_PLL_USB (1u << 13)
#define RESETS_TIMER (1u << 21)
#define RESETS_USBCTRL (1u << 24)

/* 2.15 Clocks */
#define CLOCKS_BASE 0x40008000u
#define CLOCKS_CLK_REF_CTRL (CLOCKS_BASE + 0x30u)
#define CLOCKS_CLK_REF_SELECTED (CLOCKS_BASE + 0x38u)
#define CLOCKS_CLK_SYS_CTRL (CLOCKS_BASE + 0x3cu)
#define CLOCKS_CLK_SYS_DIV (CLOCKS_BASE + 0x40u)
#define CLOCKS_CLK_SYS_SELECTED (CLOCKS_BASE + 0x44u)
#define CLOCKS_CLK_USB_CTRL (CLOCKS_BASE + 0x54u)
#define CLOCKS_CLK_USB_DIV (CLOCKS_BASE + 0x58u)
#define CLOCKS_CLK_SYS_RESUS_CTRL (CLOCKS_BASE + 0x78u)

/* 2.16 Crystal oscillator */
#define XOSC_BASE 0x40024000u
#define XOSC_CTRL (XOSC_BASE + 0x0u)
#define XOSC_STATUS (XOSC_BASE + 0x4u)
#define XOSC_STARTUP (XOSC_BASE + 0xcu)
#define XOSC_CTRL_ENABLE_1_15MHZ 0x00fabaa0u
#define XOSC_STATUS_STABLE (1u << 31)

/* 2.18 PLL */
#define PLL_SYS_BASE 0x40028000u
#define PLL_USB_BASE 0x4002c000u
#define PLL_CS 0x0u
#define PLL_PWR 0x4u
#define PLL_FBDIV_INT 0x8u
#define PLL_PRIM 0xcu
#define PLL_CS_LOCK (1u << 31)
#define PLL_PWR_PD (1u << 0)
#define PLL_PWR_POSTDIVPD (1u << 3)
#define PLL_PWR_VCOPD (1u << 5)

/* 2.19 GPIO */
#define IO_BANK0_BASE 0x40014000u
#define IO_BANK0_GPIO_CTRL(pin) (IO_BANK0_BASE + 8u * (pin) + 4u)
#define IO_BANK0_INTR(pin) (IO_BANK0_BASE + 0xf0u + 4u * ((pin) / 8u))
#define IO_BANK0_PROC0_INTE(pin) (IO_BANK0_BASE + 0x100u + 4u * ((pin) / 8u))
#define IO_BANK0_EDGES(pin) (0xcu << (4u * ((pin) % 8u)))
#define GPIO_FUNCTION_SIO 5u
#define GPIO_FUNCTION_PIO1 7u
#define GPIO_FUNCTION_NULL 31u
#define PADS_BANK0_BASE 0x4001c000u
#define PADS_BANK0_GPIO(pin) (PADS_BANK0_BASE + 4u + 4u * (pin))
#define PADS_SLEWFAST (1u << 0)
#define PADS_SCHMITT (1u << 1)
#define PADS_PDE (1u << 2)
#define PADS_PUE (1u << 3)
#define PADS_DRIVE_4MA (1u << 4)
#define PADS_IE (1u << 6)
#define SIO_BASE 0xd0000000u
#define SIO_GPIO_OUT_SET (SIO_BASE + 0x14u)
#define SIO_GPIO_OUT_CLR (SIO_BASE + 0x18u)
#define SIO_GPIO_OE_SET (SIO_BASE + 0x24u)

/* 2.5 DMA */
#define DMA_BASE 0x50000000u
#define DMA_CH_READ_ADDR(n) (DMA_BASE + 0x40u * (n) + 0x0u)
#define DMA_CH_WRITE_ADDR(n) (DMA_BASE + 0x40u * (n) + 0x4u)
#define DMA_CH_TRANS_COUNT(n) (DMA_BASE + 0x40u * (n) + 0x8u)
#define DMA_CH_CTRL_TRIG(n) (DMA_BASE + 0x40u * (n) + 0xcu)
#define DMA_CH_AL1_CTRL(n) (DMA_BASE + 0x40u * (n) + 0x10u)
#define DMA_CHAN_ABORT (DMA_BASE + 0x444u)
#define DMA_CTRL_EN (1u << 0)
#define DMA_CTRL_HIGH_PRIORITY (1u << 1)
#define DMA_CTRL_DATA_SIZE_WORD (2u << 2)
#define DMA_CTRL_INCR_WRITE (1u << 5)
#define DMA_CTRL_RING_SIZE(bits) ((uint32_t)(bits) << 6)
#define DMA_CTRL_RING_SEL_WRITE (1u << 10)
#define DMA_CTRL_CHAIN_TO(n) ((uint32_t)(n) << 11)
#define DMA_CTRL_TREQ_SEL(dreq) ((uint32_t)(dreq) << 15)
#define DMA_CTRL_IRQ_QUIET (1u << 21)
#define DMA_CTRL_BUSY (1u << 24)
#define DREQ_PIO0_RX0 4u

/* 3.7 PIO */
#define PIO0_BASE 0x50200000u
#define PIO1_BASE 0x50300000u
#define PIO_CTRL 0x0u
#define PIO_FSTAT 0x4u
#define PIO_FDEBUG 0x8u
#define PIO_TXF(sm) (0x10u + 4u * (sm))
#define PIO_RXF(sm) (0x20u + 4u * (sm))
#define PIO_INSTR_MEM(n) (0x48u + 4u * (n))
#define PIO_SM_CLKDIV(sm) (0xc8u + 0x18u * (sm))
#define PIO_SM_EXECCTRL(sm) (0xccu + 0x18u * (sm))
#define PIO_SM_SHIFTCTRL(sm) (0xd0u + 0x18u * (sm))
#define PIO_SM_INSTR(sm) (0xd8u + 0x18u * (sm))
#define PIO_SM_PINCTRL(sm) (0xdcu + 0x18u * (sm))
#define PIO_CTRL_SM_RESTART(mask) ((uint32_t)(mask) << 4)
#define PIO_CTRL_CLKDIV_RESTART(mask) ((uint32_t)(mask) << 8)
#define PIO_FSTAT_RXEMPTY(sm) (1u << (8u + (sm)))
#define PIO_FSTAT_TXFULL(sm) (1u << (16u + (sm)))
#define PIO_FDEBUG_RXSTALL_ALL 0xfu
#define PIO_EXECCTRL_WRAP(bottom, top) (((uint32_t)(bottom) << 7) | ((uint32_t)(top) << 12))
#define PIO_EXECCTRL_JMP_PIN(pin) ((uint32_t)(pin) << 24)
#define PIO_SHIFTCTRL_IN_RIGHT (1u << 18)
#define PIO_SHIFTCTRL_OUT_RIGHT (1u << 19)
#define PIO_SHIFTCTRL_FJOIN_TX (1u << 30)
#define PIO_SHIFTCTRL_FJOIN_RX (1u << 31)
#define PIO_PINCTRL_OUT(base, count) ((uint32_t)(base) | ((uint32_t)(count) << 20))
#define PIO_PINCTRL_SET(base, count) (((uint32_t)(base) << 5) | ((uint32_t)(count) << 26))

/* 4.6 Timer, 4.7 Watchdog (whose tick the timer counts) */
#define TIMER_BASE 0x40054000u
#define TIMER_ALARM0 (TIMER_BASE + 0x10u)
#define TIMER_ARMED (TIMER_BASE + 0x20u)
#define TIMER_TIMERAWH (TIMER_BASE + 0x24u)
#define TIMER_TIMERAWL (TIMER_BASE + 0x28u)
#define TIMER_INTR (TIMER_BASE + 0x34u)
#define TIMER_INTE (TIMER_BASE + 0x38u)
#define WATCHDOG_TICK (0x40058000u + 0x2cu)
#define WATCHDOG_TICK_ENABLE (1u << 9)

/* 4.10 SSI: the flash */
#define SSI_BASE 0x18000000u
#define SSI_CTRLR0 (SSI_BASE + 0x0u)
#define SSI_CTRLR1 (SSI_BASE + 0x4u)
#define SSI_SSIENR (SSI_BASE + 0x8u)
#define SSI_SER (SSI_BASE + 0x10u)
#define SSI_BAUDR (SSI_BASE + 0x14u)
#define SSI_RXFLR (SSI_BASE + 0x24u)
#define SSI_DR0 (SSI_BASE + 0x60u)

/* 4.1 USB */
#define USBCTRL_DPRAM_BASE 0x50100000u
#define USBCTRL_REGS_BASE 0x50110000u
#define USB_ADDR_ENDP (USBCTRL_REGS_BASE + 0x0u)
#define USB_MAIN_CTRL (USBCTRL_REGS_BASE + 0x40u)
#define USB_SIE_CTRL (USBCTRL_REGS_BASE + 0x4cu)
#define USB_SIE_STATUS (USBCTRL_REGS_BASE + 0x50u)
#define USB_BUFF_STATUS (USBCTRL_REGS_BASE + 0x58u)
#define USB_EP_STALL_ARM (USBCTRL_REGS_BASE + 0x68u)
#define USB_USB_MUXING (USBCTRL_REGS_BASE + 0x74u)
#define USB_USB_PWR (USBCTRL_REGS_BASE + 0x78u)
#define USB_INTE (USBCTRL_REGS_BASE + 0x90u)
#define USB_INTS (USBCTRL_REGS_BASE + 0x98u)
#define USB_MAIN_CTRL_CONTROLLER_EN (1u << 0)
#define USB_SIE_CTRL_PULLUP_EN (1u << 16)
#define USB_SIE_CTRL_EP0_INT_1BUF (1u << 29)
#define USB_SIE_STATUS_SETUP_REC (1u << 17)
#define USB_SIE_STATUS_BUS_RESET (1u << 19)
#define USB_MUXING_TO_PHY (1u << 0)
#define USB_MUXING_SOFTCON (1u << 3)
#define USB_PWR_VBUS_DETECT (1u << 3)
#define USB_PWR_VBUS_DETECT_OVERRIDE_EN (1u << 2)
#define USB_INT_BUFF_STATUS (1u << 4)
#define USB_INT_BUS_RESET (1u << 12)
#define USB_INT_SETUP_REQ (1u << 16)
#define USB_BUFFER_AVAILABLE (1u << 10)
#define USB_BUFFER_STALL (1u << 11)
#define USB_BUFFER_DATA1 (1u << 13)
#define USB_BUFFER_FULL (1u << 15)
#define USB_BUFFER_LENGTH 0x3ffu
#define USB_EP_CONTROL_ENABLE (1u << 31)
#define USB_EP_CONTROL_INTERRUPT_PER_BUFFER (1u << 29)
#define USB_EP_CONTROL_BULK (2u << 26)
#define USB_EP_CONTROL_INTERRUPT (3u << 26)

/* 2.4 Cortex-M0+ */
#define NVIC_ISER REGISTER(0xe000e100u)
#define NVIC_ICER REGISTER(0xe000e180u)
#define NVIC_ICPR REGISTER(0xe000e280u)
#define IRQ_TIMER_0 0u
#define IRQ_USBCTRL 5u
#define IRQ_IO_BANK0 13u

#endif
