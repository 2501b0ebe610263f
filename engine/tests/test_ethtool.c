// SPDX-License-Identifier: MIT
/* Settings of network interfaces, against a driver of ours in place of ioctl(2). */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "agent/setting.h"
#include "tests/cm.h"

int __wrap_ioctl(int fd, unsigned long request, ...);

/* The driver's state, and what is lost if a request is not written as it was read. */
static struct ethtool_coalesce coalesce;
static struct ethtool_eee eee;
static bool has_eee;

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *ifr;
	uint32_t command;
	va_list args;

	(void)fd;
	va_start(args, request);
	ifr = va_arg(args, struct ifreq *);
	va_end(args);
	assert_int_equal(request, SIOCETHTOOL);
	memcpy(&command, ifr->ifr_data, sizeof(command));
	errno = strcmp(ifr->ifr_name, "net0") ? ENODEV : !has_eee && command >= ETHTOOL_GEEE ? EOPNOTSUPP : 0;
	if (errno)
		return -1;
	switch (command) {
	case ETHTOOL_GCOALESCE:
		memcpy(ifr->ifr_data, &coalesce, sizeof(coalesce));
		break;
	case ETHTOOL_SCOALESCE:
		memcpy(&coalesce, ifr->ifr_data, sizeof(coalesce));
		break;
	case ETHTOOL_GEEE:
		memcpy(ifr->ifr_data, &eee, sizeof(eee));
		break;
	case ETHTOOL_SEEE:
		memcpy(&eee, ifr->ifr_data, sizeof(eee));
		break;
	default:
		fail();
	}
	return 0;
}

static int fresh(void **state)
{
	(void)state;
	coalesce = (struct ethtool_coalesce){.cmd = ETHTOOL_GCOALESCE,
					     .rx_coalesce_usecs = 3,
					     .tx_coalesce_usecs = 4000000000,
					     .use_adaptive_rx_coalesce = 1,
					     .stats_block_coalesce_usecs = 77};
	eee = (struct ethtool_eee){
		.cmd = ETHTOOL_GEEE, .eee_enabled = 1, .advertised = 0x20, .tx_lpi_timer = 9};
	has_eee = true;
	return 0;
}

static void expect(const char *name, const char *wanted)
{
	char *value;

	assert_int_equal(setting_read(name, true, &value), 0);
	assert_string_equal(value, wanted);
	free(value);
}

static void a_value_is_read_and_only_it_is_written(void **state)
{
	(void)state;
	expect("ethtool:net0:rx-usecs", "3");
	expect("ethtool:net0:tx-usecs", "4000000000");
	expect("ethtool:net0:adaptive-rx", "on");
	expect("ethtool:net0:adaptive-tx", "off");
	assert_int_equal(setting_write("ethtool:net0:rx-usecs", true, "4294967295"), 0);
	assert_int_equal(setting_write("ethtool:net0:adaptive-rx", true, "off"), 0);
	expect("ethtool:net0:rx-usecs", "4294967295");
	expect("ethtool:net0:adaptive-rx", "off");
	assert_int_equal(coalesce.stats_block_coalesce_usecs, 77);
}

static void eee_is_switched_with_what_the_link_advertises(void **state)
{
	(void)state;
	expect("ethtool:net0:eee", "on");
	assert_int_equal(setting_write("ethtool:net0:eee", true, "off"), 0);
	expect("ethtool:net0:eee", "off");
	assert_int_equal(eee.advertised, 0x20);
	assert_int_equal(eee.tx_lpi_timer, 9);
}

static void what_a_driver_or_a_machine_lacks_is_said(void **state)
{
	char *value;

	(void)state;
	has_eee = false;
	assert_int_equal(setting_read("ethtool:net0:eee", true, &value), EOPNOTSUPP);
	assert_null(value);
	assert_int_equal(setting_write("ethtool:net0:eee", true, "off"), EOPNOTSUPP);
	assert_int_equal(setting_read("ethtool:net1:rx-usecs", true, &value), ENODEV);
	assert_int_equal(setting_write("ethtool:net1:rx-usecs", true, "0"), ENODEV);
}

static void other_values_are_not_written(void **state)
{
	static const char *const numbers[] = {"", "-1", "4294967296", "on", "1 2", "0x1"};
	static const char *const switches[] = {"", "1", "yes", "offf"};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(setting_write("ethtool:net0:rx-frames", true, numbers[i]), EINVAL);
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		assert_int_equal(setting_write("ethtool:net0:eee", true, switches[i]), EINVAL);
}

static void names_are_of_an_interface_and_a_key(void **state)
{
	static const char *const others[] = {"ethtool:",
					     "ethtool::eee",
					     "ethtool:net0",
					     "ethtool:net0:",
					     "ethtool:net0:eeee",
					     "ethtool:net0:eee:",
					     "ethtool:a/b:eee",
					     "ethtool:a b:eee",
					     "ethtool:.:eee",
					     "ethtool:..:eee",
					     "ethtool:a234567890123456:eee"};

	(void)state;
	assert_true(setting_is_name("ethtool:net0:eee"));
	assert_true(setting_is_name("ethtool:...:tx-frames"));
	assert_true(setting_is_name("ethtool:a23456789012345:adaptive-tx"));
	assert_true(setting_is_volatile("ethtool:net0:eee"));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(setting_is_name(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_value_is_read_and_only_it_is_written, fresh),
		cmocka_unit_test_setup(eee_is_switched_with_what_the_link_advertises, fresh),
		cmocka_unit_test_setup(what_a_driver_or_a_machine_lacks_is_said, fresh),
		cmocka_unit_test_setup(other_values_are_not_written, fresh),
		cmocka_unit_test(names_are_of_an_interface_and_a_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
