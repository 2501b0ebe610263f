/* SPDX-License-Identifier: MIT */
/*
 * The frames that travel to a far end and back. A frame carries a nonce of the run and the number of its
 * cycle, so that no frame from elsewhere counts as an answer. Everything that is parsed here comes from
 * the network.
 */
#ifndef RTGAUGE_FRAME_H
#define RTGAUGE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 1472	   /* a datagram that no common network fragments */
#define FRAME_FOREIGN (-1) /* not an answer to this run */

enum frame_kind { FRAME_ICMP, FRAME_ICMP6, FRAME_UDP, FRAME_ETHERNET, FRAME_ETHERCAT };

struct frame_format {
	enum frame_kind kind;
	bool ip_header; /* received data begins with an IPv4 header (a raw socket) */
	bool any_ident; /* the kernel chose the identifier of an echo request, and compares it */
	uint16_t ident;
	uint64_t nonce;
	size_t size; /* length of what is sent, at least frame_least */
};

/* Returns the shortest length of a frame of this kind. */
size_t frame_least(enum frame_kind kind);

/* Writes the frame of a cycle, of format->size bytes. */
void frame_write(const struct frame_format *format, int64_t cycle, unsigned char *to);

/* Returns the cycle that received data answers, or FRAME_FOREIGN. */
int64_t frame_answer(const struct frame_format *format, const unsigned char *data, size_t length);

/* Returns how many slaves have read an answer of EtherCAT (its working counter). */
unsigned int frame_slaves(const unsigned char *data);

/* Returns the cycle of a copy of a sent frame, which may have any headers before it, or FRAME_FOREIGN. */
int64_t frame_sent(const struct frame_format *format, const unsigned char *data, size_t length);

#endif
