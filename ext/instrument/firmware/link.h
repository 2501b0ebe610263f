/* SPDX-License-Identifier: MIT */
/* Frames to and from the host over the serial line: output waits in a ring until the host reads. */
#ifndef LINK_H
#define LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

/* Called for each whole frame of the host. */
typedef void link_handler(const struct frame *frame);

void link_start(link_handler *handler);
/* Returns false, and sends nothing, if the ring has no room. Events leave room for answers to commands. */
bool link_send(uint8_t type, uint8_t token, const void *body, size_t length);
bool link_send_event(uint8_t type, const void *body, size_t length);
/* Whether the longest answer would fit. */
bool link_has_room(void);
bool link_waiting(void);
/* Takes up to `room` bytes to send next; they leave the ring, but stay unchanged until the next frame is
 * sent. */
size_t link_take(const uint8_t **bytes, size_t room);
/* Takes bytes from the host. */
void link_put(const uint8_t *bytes, size_t size);
/* The line broke: forgets the received part of a frame. */
void link_reset(void);

struct link_losses {
	uint32_t frames_dropped; /* events for which the ring had no room */
	uint32_t frames_damaged; /* of the host */
};
struct link_losses link_losses(void);

#endif
