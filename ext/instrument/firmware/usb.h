/* SPDX-License-Identifier: MIT */
/* A USB device of class CDC ACM, full speed: a serial line over the bulk endpoint 2. Only what a host needs
 * of it. */
#ifndef USB_H
#define USB_H

#include <stdbool.h>
#include <stdint.h>

void usb_start(const uint8_t id[8]);
/* Handles the controller's reports, and sends what waits. */
void usb_poll(void);
/* Whether usb_poll has something to do. */
bool usb_pending(void);

#endif
