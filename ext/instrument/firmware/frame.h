/* SPDX-License-Identifier: MIT */
/* Frames: header, body, CRC-32, all COBS-encoded, then a 0. docs/formats/instrument.md has the format. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Header, body and checksum are at most 254 bytes, so that COBS adds one byte. */
#define FRAME_HEADER 4u
#define FRAME_MAX 254u
#define FRAME_BODY_MAX (FRAME_MAX - FRAME_HEADER - 4u)
#define FRAME_ENCODED_MAX (FRAME_MAX + 2u)

struct frame {
	uint8_t type;
	uint8_t token; /* of the answered command; 0 in unsolicited frames */
	uint16_t sequence;
	const uint8_t *body;
	size_t length;
};

void frame_start(void);
/* Returns the number of bytes at `encoded`, which has room for FRAME_ENCODED_MAX. */
size_t frame_encode(uint8_t *encoded, uint8_t type, uint8_t token, uint16_t sequence, const uint8_t *body,
		    size_t length);
/* `encoded` without its final 0, decoded in place. Returns false if it is damaged. */
bool frame_decode(struct frame *frame, uint8_t *encoded, size_t size);

#endif
