/* SPDX-License-Identifier: MIT */
/* Frames to and from the host over the serial line: what is to be sent waits in a ring until the host reads.
 */
#ifndef LINK_H
#define LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

/* Called for each whole frame of the host. */
typedef void link_handler(const struct frame *frame);

void link_start(link_handler *handler);
/* Returns false, and sends nothing, where the ring has no room. Events leave room for answers to commands. */
bool link_send(uint8_t type, uint8_t token, const void *body, size_t length);
bool link_send_event(uint8_t type, const void *body, size_t length);
/* Whether an answer of the greatest length would fit. */
bool link_has_room(void);
bool link_waiting(void);
/* Up to `room` bytes that are to be sent next; they are gone from the ring, but stay as they are until the
 * next frame is sent. */
size_t link_take(const uint8_t **bytes, size_t room);
/* Bytes that came from the host. */
void link_put(const uint8_t *bytes, size_t size);
/* The line broke: what was received of a frame is forgotten. */
void link_reset(void);

struct link_losses {
	uint32_t frames_dropped; /* events for which the ring had no room */
	uint32_t frames_damaged; /* of the host's */
};
struct link_losses link_losses(void);

#endif
