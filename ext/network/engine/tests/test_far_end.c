// SPDX-License-Identifier: MIT
/* Time stamps in control messages as the kernel writes them (Documentation/networking/timestamping). */
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "ext/network/engine/far_end.h"
#include "tests/check.h"
#include "tests/cm.h"

/* Appends a control message. */
static void put(struct far_end_frame *frame, int level, int type, const void *data, size_t length)
{
	struct cmsghdr *c = (struct cmsghdr *)(frame->control + frame->control_length);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(c), data, length);
	frame->control_length += CMSG_SPACE(length);
}

static void both_clocks(void **state)
{
	static const int64_t stamps[3][2] = {{1700000000, 5}, {0, 0}, {12, 999999999}};
	struct far_end_frame frame = {0};
	struct far_end_stamps found;

	(void)state;
	put(&frame, SOL_SOCKET, SO_PRIORITY, "another", 8);
	put(&frame, SOL_SOCKET, SO_TIMESTAMPING, stamps, sizeof(stamps));
	found = far_end_stamps(&frame);
	assert_true(found.software_ns == INT64_C(1700000000000000005));
	assert_true(found.hardware_ns == INT64_C(12999999999));
}

static void no_stamps(void **state)
{
	struct far_end_frame frame = {0};
	struct far_end_stamps found = far_end_stamps(&frame);

	(void)state;
	assert_true(!found.software_ns && !found.hardware_ns);
	put(&frame, SOL_SOCKET, SO_TIMESTAMPING, "short", 6); /* and any rest of the kernel's message */
	found = far_end_stamps(&frame);
	assert_true(!found.software_ns && !found.hardware_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_clocks),
		cmocka_unit_test(no_stamps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
