// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/setting_kind.h"
#include "base/options.h"

#define PREFIX "ethtool:"

union request {
	struct ethtool_coalesce coalesce;
	struct ethtool_eee eee;
};

#define COALESCE(member) ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE, offsetof(union request, coalesce.member)

/* Each is one member (__u32) of a request, which is read, changed and written as a whole. */
static const struct key {
	const char *name;
	uint32_t get, set;
	size_t offset;
	bool is_switch;
} keys[] = {
	{"rx-usecs", COALESCE(rx_coalesce_usecs), false},
	{"rx-frames", COALESCE(rx_max_coalesced_frames), false},
	{"tx-usecs", COALESCE(tx_coalesce_usecs), false},
	{"tx-frames", COALESCE(tx_max_coalesced_frames), false},
	{"adaptive-rx", COALESCE(use_adaptive_rx_coalesce), true},
	{"adaptive-tx", COALESCE(use_adaptive_tx_coalesce), true},
	{"eee", ETHTOOL_GEEE, ETHTOOL_SEEE, offsetof(union request, eee.eee_enabled), true},
};

/* Splits `ethtool:INTERFACE:KEY`. NULL: it is another text. */
static const struct key *parse(const char *name, char interface[IFNAMSIZ])
{
	const char *at = name + strlen(PREFIX);
	size_t len;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return NULL;
	len = strcspn(at, ":");
	/* dev_valid_name() of the kernel */
	if (!len || len >= IFNAMSIZ || at[len] != ':' || strcspn(at, "/ \t\n\v\f\r") < len ||
	    !strncmp(at, ".", len) || !strncmp(at, "..", len))
		return NULL;
	memcpy(interface, at, len);
	interface[len] = '\0';
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!strcmp(at + len + 1, keys[i].name))
			return &keys[i];
	}
	return NULL;
}

static bool is_ethtool(const char *name)
{
	char interface[IFNAMSIZ];

	return parse(name, interface);
}

/* Sends a request about an interface. Returns 0 or an errno. */
static int ask(int fd, const char *interface, uint32_t command, union request *request)
{
	struct ifreq ifr = {.ifr_data = (char *)request};

	memcpy(ifr.ifr_name, interface, IFNAMSIZ);
	memcpy(request, &command, sizeof(command));
	return ioctl(fd, SIOCETHTOOL, &ifr) ? errno : 0;
}

/* Reads a member and, if `value` is given, writes it. Returns 0 or an errno. */
static int exchange(const char *interface, const struct key *key, const uint32_t *value, uint32_t *old)
{
	union request request = {0};
	int error, fd;

	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	error = ask(fd, interface, key->get, &request);
	if (!error)
		memcpy(old, (char *)&request + key->offset, sizeof(*old));
	if (!error && value) {
		memcpy((char *)&request + key->offset, value, sizeof(*value));
		error = ask(fd, interface, key->set, &request);
	}
	close(fd);
	return error;
}

static int read_ethtool(const char *name, char **value)
{
	char interface[IFNAMSIZ];
	const struct key *key = parse(name, interface);
	uint32_t old = 0;
	int error = key ? exchange(interface, key, NULL, &old) : EINVAL;

	*value = NULL;
	if (error)
		return error;
	if (key->is_switch)
		*value = strdup(old ? "on" : "off");
	else if (asprintf(value, "%u", old) < 0)
		*value = NULL;
	return *value ? 0 : ENOMEM;
}

static int write_ethtool(const char *name, const char *value)
{
	char interface[IFNAMSIZ];
	const struct key *key = parse(name, interface);
	uint32_t wanted, old;
	int64_t number;

	if (!key)
		return EINVAL;
	if (key->is_switch) {
		if (strcmp(value, "on") && strcmp(value, "off"))
			return EINVAL;
		wanted = !strcmp(value, "on");
	} else {
		if (!options_int(value, &number) || number < 0 || number > UINT32_MAX)
			return EINVAL;
		wanted = (uint32_t)number;
	}
	return exchange(interface, key, &wanted, &old);
}

const struct setting_kind setting_ethtool = {is_ethtool, read_ethtool, write_ethtool};
