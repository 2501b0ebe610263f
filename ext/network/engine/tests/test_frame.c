// SPDX-License-Identifier: MIT
#include <string.h>

#include "ext/network/engine/frame.h"
#include "tests/check.h"
#include "tests/cm.h"

#define NONCE UINT64_C(0x0123456789abcdef)

static const enum frame_kind kinds[] = {FRAME_ICMP, FRAME_ICMP6, FRAME_UDP, FRAME_ETHERNET, FRAME_ETHERCAT};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct frame_format format_of(enum frame_kind kind)
{
	return (struct frame_format){
		.kind = kind, .ident = 0x5678, .nonce = NONCE, .size = frame_least(kind)};
}

/* Changes what a far end changes. */
static void answer(enum frame_kind kind, unsigned char *frame)
{
	if (kind == FRAME_ICMP)
		frame[0] = 0;
	if (kind == FRAME_ICMP6)
		frame[0] = 129;
	if (kind == FRAME_ETHERCAT)
		frame[14] = 3; /* the working counter of three slaves */
}

static void an_answer_names_its_cycle(void **state)
{
	static const int64_t cycles[] = {0, 1, 65536, INT64_C(1) << 40, INT64_MAX};

	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct frame_format format = format_of(kinds[k]);

		for (size_t i = 0; i < sizeof(cycles) / sizeof(cycles[0]); i++) {
			unsigned char frame[FRAME_MAX] = {0};

			frame_write(&format, cycles[i], frame);
			assert_int_equal(frame_sent(&format, frame, format.size), cycles[i]);
			answer(kinds[k], frame);
			assert_int_equal(frame_answer(&format, frame, format.size), cycles[i]);
			if (kinds[k] == FRAME_ETHERCAT)
				assert_int_equal(frame_slaves(frame), 3);
			/* An Ethernet card pads what is short. */
			if (kinds[k] == FRAME_ETHERNET || kinds[k] == FRAME_ETHERCAT)
				assert_int_equal(frame_answer(&format, frame, 60), cycles[i]);
		}
	}
}

static void a_request_is_no_answer(void **state)
{
	static const enum frame_kind changed[] = {FRAME_ICMP, FRAME_ICMP6, FRAME_ETHERCAT};
	unsigned char frame[FRAME_MAX] = {0};

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		struct frame_format format = format_of(changed[k]);

		frame_write(&format, 7, frame);
		assert_int_equal(frame_answer(&format, frame, format.size), FRAME_FOREIGN);
	}
}

static void what_is_foreign(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct frame_format format = format_of(kinds[k]), other = format;
		unsigned char frame[FRAME_MAX] = {0};

		other.nonce++;
		frame_write(&other, 7, frame);
		answer(kinds[k], frame);
		assert_int_equal(frame_answer(&format, frame, format.size), FRAME_FOREIGN);
		assert_int_equal(frame_sent(&format, frame, format.size), FRAME_FOREIGN);
		frame_write(&format, -1, frame); /* no cycle has this number */
		answer(kinds[k], frame);
		assert_int_equal(frame_answer(&format, frame, format.size), FRAME_FOREIGN);
		frame_write(&format, 7, frame);
		answer(kinds[k], frame);
		for (size_t length = 0; length < frame_least(FRAME_UDP); length++)
			assert_int_equal(frame_answer(&format, frame, length), FRAME_FOREIGN);
	}
}

static void a_raw_socket_has_the_header_of_ip(void **state)
{
	struct frame_format format = format_of(FRAME_ICMP);
	unsigned char packet[24 + FRAME_MAX] = {0x46}; /* IPv4, 24 bytes of header */

	(void)state;
	format.ip_header = true;
	frame_write(&format, 9, packet + 24);
	packet[24] = 0;
	assert_int_equal(frame_answer(&format, packet, 24 + format.size), 9);
	packet[0] = 0x4f; /* a longer header than the packet has room for */
	assert_int_equal(frame_answer(&format, packet, 24 + format.size), FRAME_FOREIGN);
	packet[0] = 0x41;
	assert_int_equal(frame_answer(&format, packet, 24 + format.size), FRAME_FOREIGN);
	packet[0] = 0x46;
	packet[24 + 5]++; /* another program's identifier */
	assert_int_equal(frame_answer(&format, packet, 24 + format.size), FRAME_FOREIGN);
	format.any_ident = true;
	assert_int_equal(frame_answer(&format, packet, 24 + format.size), 9);
}

/* RFC 1071: the sum of all 16-bit words with the checksum, in ones' complement, is all ones. */
static void the_checksum_of_an_echo_request(void **state)
{
	struct frame_format format = format_of(FRAME_ICMP);

	(void)state;
	for (format.size = frame_least(FRAME_ICMP); format.size < 60; format.size++) {
		unsigned char frame[FRAME_MAX] = {0};
		uint32_t sum = 0;

		frame_write(&format, 123456789, frame);
		for (size_t i = 0; i < format.size; i += 2)
			sum += (uint32_t)frame[i] << 8 | frame[i + 1];
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		assert_int_equal(sum, 0xffff);
	}
}

/* The bytes as the specification of EtherCAT orders them: a broadcast read of two bytes, then a datagram that
 * no slave changes. */
static void the_frame_of_ethercat(void **state)
{
	static const unsigned char expected[] = {
		42,   0x10, 7, 0, 0, 0, 0,  0, 2, 0x80, 0,    0,    0,	  0,	0,    0,
		0,    0,    0, 0, 0, 0, 16, 0, 0, 0,	0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
		0xcd, 0xef, 0, 0, 0, 0, 0,  0, 0, 5,	0,    0,    0,	  0};
	struct frame_format format = format_of(FRAME_ETHERCAT);
	unsigned char frame[FRAME_MAX] = {0};

	(void)state;
	assert_int_equal(format.size, sizeof(expected));
	frame_write(&format, 5, frame);
	assert_memory_equal(frame, expected, sizeof(expected));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_names_its_cycle),
		cmocka_unit_test(a_request_is_no_answer),
		cmocka_unit_test(what_is_foreign),
		cmocka_unit_test(a_raw_socket_has_the_header_of_ip),
		cmocka_unit_test(the_checksum_of_an_echo_request),
		cmocka_unit_test(the_frame_of_ethercat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
