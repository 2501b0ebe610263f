// SPDX-License-Identifier: MIT
#include "agent/netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFIX "netlink:"
#define ADDRESS_MAX 46
#define MESSAGES_MAX (1U << 20)
#define CHUNK_MAX (1U << 16)

/*
 * The numbers are from linux/ethtool_netlink.h and linux/netdev.h, which the headers of older systems lack.
 * `interface`: the attribute that names the interface, by its name (ethtool) or its number (netdev).
 */
#define ETHTOOL "ethtool", false, 1
#define NETDEV "netdev", true

static const struct question {
	const char *kind, *family;
	bool is_dump;
	uint16_t interface;
	uint8_t command;
} questions[] = {
	{"features", ETHTOOL, 11},   {"rings", ETHTOOL, 15},	   {"channels", ETHTOOL, 17},
	{"coalesce", ETHTOOL, 19},   {"pause", ETHTOOL, 21},	   {"eee", ETHTOOL, 23},
	{"stamping", ETHTOOL, 25},   {"queues", NETDEV, 2, 10},	   {"napi", NETDEV, 1, 11},
	{"link", NULL, false, 0, 0}, {"route", NULL, false, 0, 0},
};

#define DEV_NAME 2 /* ETHTOOL_A_HEADER_DEV_NAME */

union request {
	struct nlmsghdr head;
	char data[256];
};

/* Splits the name. NULL: it is another text. */
static const struct question *parse(const char *name, const char **about)
{
	const char *kind = name + strlen(PREFIX), *end;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return NULL;
	end = strchr(kind, ':');
	if (!end || !end[1])
		return NULL;
	*about = end + 1;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const struct question *q = &questions[i];

		if (strlen(q->kind) == (size_t)(end - kind) && !strncmp(kind, q->kind, strlen(q->kind)))
			return strlen(*about) < (strcmp(q->kind, "route") ? IFNAMSIZ : ADDRESS_MAX) ? q
												    : NULL;
	}
	return NULL;
}

bool netlink_is_name(const char *name)
{
	const char *about;

	return parse(name, &about);
}

/* Starts a message with the header of its protocol. */
static void begin(union request *r, uint16_t type, uint16_t flags, const void *header, size_t len)
{
	memset(r, 0, sizeof(*r));
	r->head.nlmsg_type = type;
	r->head.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	r->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
	memcpy(NLMSG_DATA(&r->head), header, len);
}

/* All attributes together are shorter than the request. */
static void add(union request *r, uint16_t type, const void *value, size_t len)
{
	struct nlattr attr = {.nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type};
	char *at = r->data + NLMSG_ALIGN(r->head.nlmsg_len);

	memcpy(at, &attr, sizeof(attr));
	if (len)
		memcpy(at + NLA_HDRLEN, value, len);
	r->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(r->head.nlmsg_len) + NLMSG_ALIGN(attr.nla_len));
}

/* Appends the messages of a datagram. Returns -1 if more follow, else 0 or an errno. */
static int take(const char *chunk, size_t len, struct bytes *bytes)
{
	while (len >= sizeof(struct nlmsghdr)) {
		struct nlmsghdr head;
		size_t step;
		char *data;

		memcpy(&head, chunk, sizeof(head));
		if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > len)
			return EPROTO;
		if (head.nlmsg_type == NLMSG_ERROR || head.nlmsg_type == NLMSG_DONE) {
			int32_t error = 0;

			if (head.nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
				memcpy(&error, chunk + NLMSG_HDRLEN, sizeof(error));
			return error < 0 ? -error : 0;
		}
		step = NLMSG_ALIGN(head.nlmsg_len) < len ? NLMSG_ALIGN(head.nlmsg_len) : len;
		if (bytes->len + step > MESSAGES_MAX)
			return EFBIG;
		data = realloc(bytes->data, bytes->len + step + 1);
		if (!data)
			return ENOMEM;
		memcpy(data + bytes->len, chunk, step);
		bytes->data = data;
		bytes->len += step;
		data[bytes->len] = '\0';
		chunk += step;
		len -= step;
	}
	return -1;
}

/* Sends a request, and collects the answer. Returns 0 or an errno. */
static int ask(int fd, const union request *r, struct bytes *bytes)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	char *chunk = malloc(CHUNK_MAX);
	int error = chunk ? -1 : ENOMEM;

	if (chunk && sendto(fd, r, r->head.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		error = errno;
	while (error < 0) {
		struct sockaddr_nl from = {0};
		socklen_t from_len = sizeof(from);
		ssize_t len = recvfrom(fd, chunk, CHUNK_MAX, MSG_TRUNC, (struct sockaddr *)&from, &from_len);

		if (len < 0)
			error = errno == EINTR ? -1 : errno;
		else if (len > (ssize_t)CHUNK_MAX)
			error = EFBIG;
		else if (!from.nl_pid) /* from the kernel */
			error = take(chunk, (size_t)len, bytes);
	}
	free(chunk);
	return error;
}

/* Returns the number of a family of generic netlink, or -errno. */
static int family_number(int fd, const char *name)
{
	struct genlmsghdr generic = {.cmd = CTRL_CMD_GETFAMILY, .version = 1};
	struct bytes bytes = {0};
	union request r;
	int found = -ENOTSUP, error;

	begin(&r, GENL_ID_CTRL, NLM_F_ACK, &generic, sizeof(generic));
	add(&r, CTRL_ATTR_FAMILY_NAME, name, strlen(name) + 1);
	error = ask(fd, &r, &bytes);
	for (size_t at = NLMSG_LENGTH(GENL_HDRLEN); !error && at + NLA_HDRLEN <= bytes.len;) {
		struct nlattr attr;
		uint16_t number;

		memcpy(&attr, bytes.data + at, sizeof(attr));
		if (attr.nla_len < NLA_HDRLEN || at + attr.nla_len > bytes.len)
			break;
		if (attr.nla_type == CTRL_ATTR_FAMILY_ID && attr.nla_len >= NLA_HDRLEN + sizeof(number)) {
			memcpy(&number, bytes.data + at + NLA_HDRLEN, sizeof(number));
			found = number;
		}
		at += NLMSG_ALIGN(attr.nla_len);
	}
	free(bytes.data);
	return error && error != ENOENT ? -error : found;
}

static int generic_request(int fd, const struct question *q, const char *interface, union request *r)
{
	struct genlmsghdr generic = {.cmd = q->command, .version = 1};
	uint32_t index = if_nametoindex(interface);
	int family = index ? family_number(fd, q->family) : -ENODEV;

	if (family < 0)
		return -family;
	begin(r, (uint16_t)family, q->is_dump ? NLM_F_DUMP : NLM_F_ACK, &generic, sizeof(generic));
	if (q->is_dump) {
		add(r, q->interface, &index, sizeof(index));
	} else {
		union request name;

		begin(&name, 0, 0, "", 0);
		add(&name, DEV_NAME, interface, strlen(interface) + 1);
		add(r, q->interface | NLA_F_NESTED, NLMSG_DATA(&name.head),
		    name.head.nlmsg_len - NLMSG_HDRLEN);
	}
	return 0;
}

static int link_request(const char *interface, union request *r)
{
	struct ifinfomsg link = {.ifi_index = (int)if_nametoindex(interface)};

	if (!link.ifi_index)
		return ENODEV;
	begin(r, RTM_GETLINK, NLM_F_ACK, &link, sizeof(link));
	return 0;
}

static int route_request(const char *address, union request *r)
{
	struct rtmsg route = {.rtm_family = strchr(address, ':') ? AF_INET6 : AF_INET};
	size_t len = route.rtm_family == AF_INET ? 4 : 16;
	unsigned char number[16];

	if (inet_pton(route.rtm_family, address, number) != 1)
		return EINVAL;
	route.rtm_dst_len = (unsigned char)(8 * len);
	begin(r, RTM_GETROUTE, NLM_F_ACK, &route, sizeof(route));
	add(r, RTA_DST, number, len);
	return 0;
}

int netlink_read(const char *name, struct bytes *bytes)
{
	const char *about = NULL;
	const struct question *q = parse(name, &about);
	union request r = {0};
	int fd, error;

	*bytes = (struct bytes){0};
	if (!q)
		return EINVAL;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, q->family ? NETLINK_GENERIC : NETLINK_ROUTE);
	if (fd < 0)
		return errno;
	error = q->family		    ? generic_request(fd, q, about, &r)
		: !strcmp(q->kind, "route") ? route_request(about, &r)
					    : link_request(about, &r);
	if (!error)
		error = ask(fd, &r, bytes);
	close(fd);
	if (error) {
		free(bytes->data);
		*bytes = (struct bytes){0};
	}
	return error;
}
