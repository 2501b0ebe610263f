// SPDX-License-Identifier: MIT
/*
 * udp:ADDRESS:PORT: an edge is a datagram to or from another machine, with a special mark and its number.
 * The slave waits at the address, and the master sends to it from any free port. No name is resolved,
 * because the host gives an address.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "ext/signal/engine/path/path.h"

#define ADDRESS_MAX 80

struct datagram {
	char mark[8];
	uint64_t number; /* big-endian */
};

static const char own_mark[8] = {'r', 't', 'g', 'a', 'u', 'g', 'e', '1'};

static int bad_address(const char *rest)
{
	return error_line(
		STATUS_USAGE, "path",
		"--path udp:%.100s: write udp:ADDRESS:PORT, such as udp:192.168.1.5:7000 or udp:[fe80::1%%eth0]:7000",
		rest);
}

/* Parses an address such as 10.0.0.1, ::1 or fe80::1%eth0. Returns false for any other text. */
static bool parse_address(char *host, uint16_t port, struct sockaddr_storage *address, socklen_t *length)
{
	struct sockaddr_in *four = (struct sockaddr_in *)address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;
	char *scope = strchr(host, '%');

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		*length = sizeof(*four);
		return true;
	}
	if (scope) {
		*scope++ = '\0';
		six->sin6_scope_id = if_nametoindex(scope);
		if (!six->sin6_scope_id)
			return false;
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	*length = sizeof(*six);
	return inet_pton(AF_INET6, host, &six->sin6_addr) == 1;
}

/* Parses "ADDRESS:PORT" or "[ADDRESS]:PORT". Returns 0 or the exit status. */
static int parse(const char *rest, struct sockaddr_storage *address, socklen_t *length)
{
	const char *colon = strrchr(rest, ':'), *begin = rest;
	char host[ADDRESS_MAX];
	int64_t port;
	size_t len;

	if (!colon || !options_int(colon + 1, &port) || port < 1 || port > UINT16_MAX)
		return bad_address(rest);
	len = (size_t)(colon - rest);
	if (*rest == '[' && len > 2 && colon[-1] == ']') {
		begin++;
		len -= 2;
	}
	if (!len || len >= sizeof(host))
		return bad_address(rest);
	memcpy(host, begin, len);
	host[len] = '\0';
	return parse_address(host, (uint16_t)port, address, length) ? 0 : bad_address(rest);
}

static int open_end(const char *rest, enum path_role role, bool both_ways, struct path_end *ends)
{
	struct sockaddr_storage address = {0};
	socklen_t length = 0;
	int status = parse(rest, &address, &length);

	(void)both_ways;
	if (status)
		return status;
	if (role != PATH_MASTER) {
		struct path_end *slave = &ends[PATH_SLAVE];

		slave->in = slave->out = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (slave->in < 0 || bind(slave->in, (struct sockaddr *)&address, length))
			return error_line(STATUS_CANNOT_MEASURE, "path",
					  "--path udp:%s: the slave cannot listen at this address (%s)%s",
					  rest, strerror(errno),
					  errno == EADDRNOTAVAIL
						  ? ": give an address of the machine that the slave runs on"
					  : errno == EADDRINUSE ? ": choose another port"
								: "");
	}
	if (role != PATH_SLAVE) {
		struct path_end *master = &ends[PATH_MASTER];

		master->in = master->out = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (master->in < 0 || connect(master->in, (struct sockaddr *)&address, length))
			return error_line(STATUS_CANNOT_MEASURE, "path", "cannot reach --path udp:%s: %s",
					  rest, strerror(errno));
	}
	return 0;
}

static int send_edge(struct path_end *end, int64_t number)
{
	struct datagram datagram = {.number = htobe64((uint64_t)number)};
	const struct sockaddr *to = end->peer_length ? (const struct sockaddr *)&end->peer : NULL;

	memcpy(datagram.mark, own_mark, sizeof(own_mark));
	if (sendto(end->out, &datagram, sizeof(datagram), 0, to, end->peer_length) >= 0)
		return 0;
	/* Nobody is listening, or there is no room now. The answer will be missing, which is counted. */
	return errno == ECONNREFUSED || errno == ENOBUFS ? 0 : errno;
}

static int receive_edge(struct path_end *end, struct edge *edge)
{
	struct sockaddr_storage from;
	socklen_t from_length = 0;
	struct datagram datagram;
	ssize_t len;

	do {
		socklen_t length = sizeof(from);

		len = recvfrom(end->in, &datagram, sizeof(datagram), 0, (struct sockaddr *)&from, &length);
		if (len < 0 && errno != ECONNREFUSED)
			return errno;
		from_length = length;
	} while (len != (ssize_t)sizeof(datagram) || memcmp(datagram.mark, own_mark, sizeof(own_mark)) != 0);
	if (end->slave) {
		end->peer = from;
		end->peer_length = from_length;
	}
	edge->number = (int64_t)be64toh(datagram.number);
	edge->time_ns = 0;
	edge->count = 1;
	return 0;
}

const struct path_kind path_udp = {
	.name = "udp",
	.numbered = true,
	.open = open_end,
	.send = send_edge,
	.receive = receive_edge,
};
