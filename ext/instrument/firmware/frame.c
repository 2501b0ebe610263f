/* SPDX-License-Identifier: MIT */
#include "frame.h"

static uint32_t crc_table[256];

void frame_start(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (unsigned bit = 0; bit < 8; bit++)
			value = value & 1u ? (value >> 1) ^ 0xedb88320u : value >> 1;
		crc_table[i] = value;
	}
}

static uint32_t crc32(const uint8_t *bytes, size_t size)
{
	uint32_t crc = 0xffffffffu;

	for (size_t i = 0; i < size; i++)
		crc = (crc >> 8) ^ crc_table[(crc ^ bytes[i]) & 0xffu];
	return ~crc;
}

size_t frame_encode(uint8_t *encoded, uint8_t type, uint8_t token, uint16_t sequence, const uint8_t *body,
		    size_t length)
{
	/* Built one byte further on, where COBS leaves it: with at most 254 bytes every zero is replaced by
	 * the distance to the next. */
	uint8_t *raw = encoded + 1;
	size_t size = FRAME_HEADER + length;
	uint8_t distance = 1;

	raw[0] = type;
	raw[1] = token;
	raw[2] = (uint8_t)sequence;
	raw[3] = (uint8_t)(sequence >> 8);
	uint32_t crc = ~crc32(raw, FRAME_HEADER);
	uint8_t *to = raw + FRAME_HEADER;

	for (const uint8_t *from = body, *end = body + length; from < end; from++) {
		crc = (crc >> 8) ^ crc_table[(crc ^ *from) & 0xffu];
		*to++ = *from;
	}
	crc = ~crc;
	for (unsigned i = 0; i < 4; i++)
		raw[size++] = (uint8_t)(crc >> (8 * i));
	for (size_t i = size; i > 0; i--) {
		if (encoded[i] == 0) {
			encoded[i] = distance;
			distance = 0;
		}
		distance++;
	}
	encoded[0] = distance;
	encoded[size + 1] = 0;
	return size + 2;
}

bool frame_decode(struct frame *frame, uint8_t *encoded, size_t size)
{
	if (size < 1 + FRAME_HEADER + 4 || size > FRAME_MAX + 1)
		return false;
	size_t at = 0;

	while (at < size) {
		uint8_t distance = encoded[at];

		if (distance == 0 || at + distance > size)
			return false;
		encoded[at] = 0;
		at += distance;
	}
	uint8_t *raw = encoded + 1;
	size_t crc_at = size - 1 - 4;
	uint32_t expected = raw[crc_at] | (uint32_t)raw[crc_at + 1] << 8 | (uint32_t)raw[crc_at + 2] << 16 |
			    (uint32_t)raw[crc_at + 3] << 24;

	if (crc32(raw, crc_at) != expected)
		return false;
	*frame = (struct frame){
		.type = raw[0],
		.token = raw[1],
		.sequence = (uint16_t)(raw[2] | raw[3] << 8),
		.body = raw + FRAME_HEADER,
		.length = crc_at - FRAME_HEADER,
	};
	return true;
}
