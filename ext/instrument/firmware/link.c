/* SPDX-License-Identifier: MIT */
#include "link.h"

#define RING_SIZE 65536u
#define ANSWER_ROOM 8192u

static uint8_t ring[RING_SIZE];
static uint32_t written;
static uint32_t taken;
static uint16_t sequence;
static uint8_t received[FRAME_ENCODED_MAX];
static size_t received_size;
static bool received_overlong;
static struct link_losses losses;
static link_handler *handle;

void link_start(link_handler *handler)
{
	handle = handler;
	frame_start();
}

static bool send(uint8_t type, uint8_t token, const void *body, size_t length, size_t keep)
{
	static uint8_t encoded[FRAME_ENCODED_MAX];

	if (written - taken + FRAME_ENCODED_MAX + keep > RING_SIZE)
		return false;
	uint32_t at = written % RING_SIZE;

	/* If it surely fits before the end, it is encoded in place. */
	if (at + FRAME_ENCODED_MAX <= RING_SIZE) {
		written += frame_encode(&ring[at], type, token, sequence++, body, length);
		return true;
	}
	size_t size = frame_encode(encoded, type, token, sequence++, body, length);

	for (size_t i = 0; i < size; i++)
		ring[written++ % RING_SIZE] = encoded[i];
	return true;
}

bool link_send(uint8_t type, uint8_t token, const void *body, size_t length)
{
	return send(type, token, body, length, 0);
}

bool link_send_event(uint8_t type, const void *body, size_t length)
{
	if (send(type, 0, body, length, ANSWER_ROOM))
		return true;
	losses.frames_dropped++;
	return false;
}

bool link_has_room(void)
{
	return written - taken + FRAME_ENCODED_MAX <= RING_SIZE;
}

bool link_waiting(void)
{
	return written != taken;
}

size_t link_take(const uint8_t **bytes, size_t room)
{
	uint32_t at = taken % RING_SIZE;
	size_t size = written - taken;

	if (size > room)
		size = room;
	if (size > RING_SIZE - at)
		size = RING_SIZE - at;
	*bytes = &ring[at];
	taken += size;
	return size;
}

static void frame_ended(void)
{
	struct frame frame;

	if (received_overlong || (received_size > 0 && !frame_decode(&frame, received, received_size)))
		losses.frames_damaged++;
	else if (received_size > 0)
		handle(&frame);
	link_reset();
}

void link_put(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == 0)
			frame_ended();
		else if (received_size < sizeof(received))
			received[received_size++] = bytes[i];
		else
			received_overlong = true;
	}
}

void link_reset(void)
{
	received_size = 0;
	received_overlong = false;
}

struct link_losses link_losses(void)
{
	return losses;
}
