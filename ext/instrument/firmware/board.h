/* SPDX-License-Identifier: MIT */
/* Clocks, pins, the microsecond timer, the board's id. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stdint.h>

#define TICKS_PER_US 125u
#define TICKS_PER_SECOND 125000000u
#define PIN_COUNT 30u
#define LED_PIN 25u

enum pull { PULL_NONE, PULL_UP, PULL_DOWN };

void board_start(void);
/* The serial number of the flash chip: 8 bytes. */
void board_unique_id(uint8_t id[8]);
void board_led(bool on);
/* Restarts into the boot ROM's drive for UF2 files; does not return. */
void board_bootloader(void);

/* Microseconds since the start of the program; does not wrap. */
uint64_t board_time_us(void);
/* The core wakes at this time at the latest. */
void board_wake_at(uint64_t time_us);
/* Sleeps until the timer, the USB controller or an edge at a watched pin has something. `pending` is
 * checked once more with interrupts off. */
void board_sleep(bool (*pending)(void));

void board_pin_input(unsigned pin, enum pull pull);
void board_pin_output(unsigned pin);
void board_pin_release(unsigned pin);
void board_pin_watch(unsigned pin, bool watched);

#endif
