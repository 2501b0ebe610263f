// SPDX-License-Identifier: MIT
#include "ext/network/engine/frame.h"

#include <endian.h>
#include <string.h>

#define TICKET 16     /* nonce and number, both big-endian */
#define ICMP_HEADER 8 /* RFC 792, RFC 4443 */
#define IPV4_LEAST 20
#define ETHERNET_LEAST 46 /* what an Ethernet frame carries at least */

enum { ECHO_REPLY = 0, ECHO_REQUEST = 8, ECHO_REQUEST6 = 128, ECHO_REPLY6 = 129 };

/*
 * EtherCAT (IEC 61158-4-12): a frame header and two datagrams. The first is a broadcast read (BRD) of two
 * bytes at register 0, in which each slave increments the working counter. The second (NOP) carries the
 * ticket, because slaves leave its data alone.
 */
enum {
	ETHERCAT_HEADER = 2,
	DATAGRAM_HEADER = 10,
	COUNTER = 2,
	READ_DATA = 2,
	READ_AT = ETHERCAT_HEADER,
	READ_COUNTER_AT = READ_AT + DATAGRAM_HEADER + READ_DATA,
	NOP_AT = READ_COUNTER_AT + COUNTER,
	ETHERCAT_TICKET_AT = NOP_AT + DATAGRAM_HEADER,
	ETHERCAT_LENGTH = ETHERCAT_TICKET_AT + TICKET + COUNTER,
	COMMAND_NOP = 0,
	COMMAND_BRD = 7,
	TYPE_COMMANDS = 1,
	MORE = 0x8000,
};

static size_t ticket_at(enum frame_kind kind)
{
	if (kind == FRAME_ETHERCAT)
		return ETHERCAT_TICKET_AT;
	return kind == FRAME_ICMP || kind == FRAME_ICMP6 ? ICMP_HEADER : 0;
}

size_t frame_least(enum frame_kind kind)
{
	if (kind == FRAME_ETHERCAT || kind == FRAME_ETHERNET)
		return ETHERNET_LEAST;
	return ticket_at(kind) + TICKET;
}

static void put16(unsigned char *to, uint16_t big_endian)
{
	memcpy(to, &big_endian, sizeof(big_endian));
}

static uint16_t get16(const unsigned char *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return value;
}

static void put64(unsigned char *to, uint64_t value)
{
	uint64_t big_endian = htobe64(value);

	memcpy(to, &big_endian, sizeof(big_endian));
}

static uint64_t get64(const unsigned char *from)
{
	uint64_t big_endian;

	memcpy(&big_endian, from, sizeof(big_endian));
	return be64toh(big_endian);
}

/* RFC 1071 */
static uint16_t checksum(const unsigned char *data, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += get16(data + i);
	if (length % 2)
		sum += htole16(data[length - 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void write_echo(const struct frame_format *format, int64_t cycle, unsigned char *to)
{
	to[0] = format->kind == FRAME_ICMP ? ECHO_REQUEST : ECHO_REQUEST6;
	put16(to + 4, htobe16(format->ident));
	put16(to + 6, htobe16((uint16_t)cycle));
	if (format->kind == FRAME_ICMP) /* the kernel writes the checksum of ICMPv6 */
		put16(to + 2, checksum(to, format->size));
}

static void write_ethercat(unsigned char *to)
{
	put16(to, htole16((ETHERCAT_LENGTH - ETHERCAT_HEADER) | TYPE_COMMANDS << 12));
	to[READ_AT] = COMMAND_BRD;
	put16(to + READ_AT + 6, htole16(READ_DATA | MORE));
	to[NOP_AT] = COMMAND_NOP;
	put16(to + NOP_AT + 6, htole16(TICKET));
}

void frame_write(const struct frame_format *format, int64_t cycle, unsigned char *to)
{
	size_t at = ticket_at(format->kind);

	memset(to, 0, format->size);
	put64(to + at, format->nonce);
	put64(to + at + 8, (uint64_t)cycle);
	if (format->kind == FRAME_ETHERCAT)
		write_ethercat(to);
	else if (format->kind == FRAME_ICMP || format->kind == FRAME_ICMP6)
		write_echo(format, cycle, to);
}

/* Returns the cycle of the ticket at this place, or FRAME_FOREIGN. */
static int64_t ticket(const struct frame_format *format, const unsigned char *data, size_t length, size_t at)
{
	uint64_t cycle;

	if (length < at + TICKET || get64(data + at) != format->nonce)
		return FRAME_FOREIGN;
	cycle = get64(data + at + 8);
	return cycle > INT64_MAX ? FRAME_FOREIGN : (int64_t)cycle;
}

static bool is_echo_reply(const struct frame_format *format, const unsigned char *data, size_t length)
{
	return length >= ICMP_HEADER && data[0] == (format->kind == FRAME_ICMP ? ECHO_REPLY : ECHO_REPLY6) &&
	       !data[1] && (format->any_ident || be16toh(get16(data + 4)) == format->ident);
}

/* The frame itself may come back before a slave has seen it, as from a cable that loops it. */
static bool is_ethercat_answer(const unsigned char *data, size_t length)
{
	return length >= ETHERCAT_LENGTH && le16toh(get16(data)) >> 12 == TYPE_COMMANDS &&
	       data[READ_AT] == COMMAND_BRD && data[NOP_AT] == COMMAND_NOP &&
	       get16(data + READ_COUNTER_AT) != 0;
}

int64_t frame_answer(const struct frame_format *format, const unsigned char *data, size_t length)
{
	if (format->ip_header) {
		size_t header = length < IPV4_LEAST ? 0 : (size_t)(data[0] & 15) * 4;

		if (header < IPV4_LEAST || header > length)
			return FRAME_FOREIGN;
		data += header;
		length -= header;
	}
	if ((format->kind == FRAME_ICMP || format->kind == FRAME_ICMP6) &&
	    !is_echo_reply(format, data, length))
		return FRAME_FOREIGN;
	if (format->kind == FRAME_ETHERCAT && !is_ethercat_answer(data, length))
		return FRAME_FOREIGN;
	return ticket(format, data, length, ticket_at(format->kind));
}

unsigned int frame_slaves(const unsigned char *data)
{
	return le16toh(get16(data + READ_COUNTER_AT));
}

int64_t frame_sent(const struct frame_format *format, const unsigned char *data, size_t length)
{
	uint64_t nonce = htobe64(format->nonce);
	const unsigned char *found = memmem(data, length, &nonce, sizeof(nonce));

	return found ? ticket(format, data, length, (size_t)(found - data)) : FRAME_FOREIGN;
}
