// SPDX-License-Identifier: MIT
#include "ext/network/engine/far_end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif
#define ICMP_FILTER_OPTION 1 /* linux/icmp.h, which does not go with netinet/ip_icmp.h */
#define ETHERTYPE_OWN 0x88b5 /* IEEE 802: local experiments */
#define ETHERTYPE_ETHERCAT 0x88a4
#define ADDRESS_TEXT 80

static int bad_path(const struct far_end *end)
{
	return error_line(
		STATUS_USAGE, "path",
		"--path %.100s: write icmp:ADDRESS, udp:ADDRESS:PORT, eth:INTERFACE,MAC[,ETHERTYPE] "
		"or ethercat:INTERFACE",
		end->path);
}

static int cannot_open(const struct far_end *end)
{
	if (errno == EPERM || errno == EACCES)
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"--path %.100s needs the capability CAP_NET_RAW, which this user does not have; "
			"run rtgauge as root",
			end->path);
	return error_line(STATUS_CANNOT_MEASURE, "path", "cannot open --path %.100s: %s", end->path,
			  strerror(errno));
}

/* Parses an address such as 10.0.0.1, ::1, [::1] or fe80::1%eth0 into end->address. */
static bool parse_address(struct far_end *end, const char *text, size_t length, uint16_t port)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&end->address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&end->address;
	char host[ADDRESS_TEXT], *scope;

	if (length > 2 && text[0] == '[' && text[length - 1] == ']') {
		text++;
		length -= 2;
	}
	if (!length || length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		end->address_length = sizeof(*four);
		return true;
	}
	scope = strchr(host, '%');
	if (scope) {
		*scope++ = '\0';
		six->sin6_scope_id = if_nametoindex(scope);
		if (!six->sin6_scope_id)
			return false;
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	end->address_length = sizeof(*six);
	return inet_pton(AF_INET6, host, &six->sin6_addr) == 1;
}

static int connect_to(struct far_end *end)
{
	if (connect(end->fd, (struct sockaddr *)&end->address, end->address_length))
		return error_line(
			STATUS_CANNOT_MEASURE, "path", "cannot reach --path %.100s: %s", end->path,
			errno == EACCES	       ? "this is a broadcast address; give the address of one device"
			: errno == ENETUNREACH ? "there is no route to this address; check it, and `ip route`"
					       : strerror(errno));
	end->address_length = 0;
	return 0;
}

static int open_udp(struct far_end *end, const char *rest)
{
	const char *colon = strrchr(rest, ':');
	int64_t port;

	if (!colon || !options_int(colon + 1, &port) || port < 1 || port > UINT16_MAX ||
	    !parse_address(end, rest, (size_t)(colon - rest), (uint16_t)port))
		return bad_path(end);
	end->format.kind = FRAME_UDP;
	end->fd = socket(end->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return end->fd < 0 ? cannot_open(end) : connect_to(end);
}

/* Lets only echo replies into a raw socket. */
static bool filter_replies(const struct far_end *end)
{
	if (end->format.kind == FRAME_ICMP) {
		const uint32_t dropped = ~UINT32_C(1); /* a bit for each type; 0: echo reply */

		return !setsockopt(end->fd, SOL_RAW, ICMP_FILTER_OPTION, &dropped, sizeof(dropped));
	}
	struct icmp6_filter passed;

	ICMP6_FILTER_SETBLOCKALL(&passed);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &passed);
	return !setsockopt(end->fd, IPPROTO_ICMPV6, ICMP6_FILTER, &passed, sizeof(passed));
}

/* An echo socket needs no capability if the kernel allows it (net.ipv4.ping_group_range). */
static int open_icmp(struct far_end *end, const char *rest)
{
	int protocol;

	if (!parse_address(end, rest, strlen(rest), 0))
		return bad_path(end);
	end->format.kind = end->address.ss_family == AF_INET ? FRAME_ICMP : FRAME_ICMP6;
	protocol = end->format.kind == FRAME_ICMP ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	end->format.any_ident = true;
	end->fd = socket(end->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, protocol);
	if (end->fd < 0) {
		end->format.any_ident = false;
		end->format.ip_header = end->format.kind == FRAME_ICMP;
		end->fd = socket(end->address.ss_family, SOCK_RAW | SOCK_CLOEXEC, protocol);
		if (end->fd < 0 || !filter_replies(end))
			return cannot_open(end);
	}
	return connect_to(end);
}

/* Opens a socket for frames of this type on this interface. */
static int open_packets(struct far_end *end, const char *name, size_t length,
			const unsigned char mac[ETH_ALEN], uint16_t type)
{
	struct sockaddr_ll *to = (struct sockaddr_ll *)&end->address;
	const int yes = 1;

	if (!length || length >= sizeof(end->interface))
		return bad_path(end);
	memcpy(end->interface, name, length);
	end->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (end->fd < 0)
		return cannot_open(end);
	*to = (struct sockaddr_ll){.sll_family = AF_PACKET,
				   .sll_protocol = htons(type),
				   .sll_ifindex = (int)if_nametoindex(end->interface),
				   .sll_halen = ETH_ALEN};
	memcpy(to->sll_addr, mac, ETH_ALEN);
	end->address_length = sizeof(*to);
	if (!to->sll_ifindex)
		return error_line(STATUS_CANNOT_MEASURE, "path",
				  "--path %.100s: there is no interface %s; `ip link` lists them", end->path,
				  end->interface);
	if (bind(end->fd, (struct sockaddr *)to, sizeof(*to)) ||
	    setsockopt(end->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)))
		return cannot_open(end);
	return 0;
}

/* Parses a MAC address of exactly this length, such as 02:00:00:00:00:01. */
static bool parse_mac(const char *text, size_t length, unsigned char mac[ETH_ALEN])
{
	if (length != 3 * ETH_ALEN - 1)
		return false;
	for (size_t i = 0; i < ETH_ALEN; i++) {
		char digits[3] = {text[3 * i], text[3 * i + 1], '\0'}, *end;

		mac[i] = (unsigned char)strtoul(digits, &end, 16);
		if (end != digits + 2 || digits[0] == '+' || digits[0] == '-' ||
		    (i + 1 < ETH_ALEN && text[3 * i + 2] != ':'))
			return false;
	}
	return true;
}

static int open_ethernet(struct far_end *end, const char *rest)
{
	const char *comma = strchr(rest, ','), *second = comma ? strchr(comma + 1, ',') : NULL;
	unsigned char mac[ETH_ALEN];
	unsigned long type = ETHERTYPE_OWN;
	char *after = NULL;

	if (!comma || !parse_mac(comma + 1, second ? (size_t)(second - comma - 1) : strlen(comma + 1), mac))
		return bad_path(end);
	if (second) {
		type = strtoul(second + 1, &after, 16);
		if (*after || after == second + 1 || type < 0x600 || type > UINT16_MAX)
			return bad_path(end);
	}
	end->format.kind = FRAME_ETHERNET;
	return open_packets(end, rest, (size_t)(comma - rest), mac, (uint16_t)type);
}

static int open_ethercat(struct far_end *end, const char *rest)
{
	static const unsigned char everybody[ETH_ALEN] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	end->format.kind = FRAME_ETHERCAT;
	return open_packets(end, rest, strlen(rest), everybody, ETHERTYPE_ETHERCAT);
}

static const struct {
	const char *name;
	int (*open)(struct far_end *end, const char *rest);
} kinds[] = {{"icmp:", open_icmp}, {"udp:", open_udp}, {"eth:", open_ethernet}, {"ethercat:", open_ethercat}};

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

/* Finds the interface that has the socket's own address. An own address is reached over lo. */
static void find_interface(struct far_end *end)
{
	struct sockaddr_storage own = {0};
	socklen_t length = sizeof(own);
	struct ifaddrs *all, *each;

	if (end->interface[0] || getsockname(end->fd, (struct sockaddr *)&own, &length) || getifaddrs(&all))
		return;
	if (same_address((struct sockaddr *)&own, &end->address))
		strcpy(end->interface, "lo");
	for (each = all; each && !end->interface[0]; each = each->ifa_next) {
		if (same_address(each->ifa_addr, &own))
			snprintf(end->interface, sizeof(end->interface), "%s", each->ifa_name);
	}
	freeifaddrs(all);
}

static void draw(struct frame_format *format)
{
	/* A board that has just booted may have no entropy yet. */
	if (getrandom(&format->nonce, sizeof(format->nonce), GRND_NONBLOCK) != (ssize_t)sizeof(format->nonce))
		format->nonce = (uint64_t)clock_now_ns(CLOCK_MONOTONIC) * UINT64_C(0x9e3779b97f4a7c15);
	format->ident = (uint16_t)(format->nonce >> 16);
}

/* Returns whether somebody told the network card to stamp all frames (hwstamp_ctl -t 1 -r 1). That is a
 * setting of the whole interface, which this program leaves alone. */
static bool card_stamps(const struct far_end *end)
{
	struct hwtstamp_config config = {0};
	struct ifreq request = {.ifr_data = (char *)&config};

	memcpy(request.ifr_name, end->interface, sizeof(request.ifr_name));
	return end->interface[0] && !ioctl(end->fd, SIOCGHWTSTAMP, &request) &&
	       config.tx_type == HWTSTAMP_TX_ON && config.rx_filter == HWTSTAMP_FILTER_ALL;
}

/* Asks for the kernel's time stamps in the way that takes the least time in a response: SIOCGSTAMPNS reads
 * the one of an arrival later. The first call turns it on. */
static bool software_stamps(const struct far_end *end)
{
	const int departures = SOF_TIMESTAMPING_TX_SOFTWARE;
	struct timespec none;

	return !setsockopt(end->fd, SOL_SOCKET, SO_TIMESTAMPING, &departures, sizeof(departures)) &&
	       (!ioctl(end->fd, SIOCGSTAMPNS, &none) || errno == ENOENT);
}

static int set_options(struct far_end *end)
{
	const int both = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE |
			 SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_TX_HARDWARE |
			 SOF_TIMESTAMPING_RX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE |
			 SOF_TIMESTAMPING_OPT_TX_SWHW;
	const int priority = (int)end->priority, busy_us = (int)end->busy_poll_us;

	end->hardware_stamps =
		card_stamps(end) && !setsockopt(end->fd, SOL_SOCKET, SO_TIMESTAMPING, &both, sizeof(both));
	if (!end->hardware_stamps && !software_stamps(end))
		end->stamps_error = errno;
	if (priority && setsockopt(end->fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)))
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"--socket-priority %d is refused (%s): a priority above 6 needs CAP_NET_ADMIN; "
			"run rtgauge as root",
			priority, strerror(errno));
	if (busy_us && setsockopt(end->fd, SOL_SOCKET, SO_BUSY_POLL, &busy_us, sizeof(busy_us)))
		return error_line(
			STATUS_CANNOT_MEASURE, "path",
			"--busy-poll-us %d is refused (%s): it needs CAP_NET_ADMIN and a kernel with "
			"CONFIG_NET_RX_BUSY_POLL; run rtgauge as root, or leave it out",
			busy_us, strerror(errno));
	return 0;
}

int far_end_open(struct far_end *end)
{
	size_t least;
	int status = -1;

	for (size_t i = 0; status < 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t length = strlen(kinds[i].name);

		if (!strncmp(end->path, kinds[i].name, length))
			status = kinds[i].open(end, end->path + length);
	}
	if (status)
		return status < 0 ? bad_path(end) : status;
	least = frame_least(end->format.kind);
	if (end->size && end->size < least)
		return error_line(STATUS_USAGE, "path",
				  "--size %zu is too short for --path %.100s; give at least %zu", end->size,
				  end->path, least);
	if (end->size && end->format.kind == FRAME_ETHERCAT)
		return error_line(STATUS_USAGE, "path",
				  "--size is not for ethercat, whose frame has a fixed length; leave it out");
	end->format.size = end->size ? end->size : least;
	draw(&end->format);
	find_interface(end);
	return set_options(end);
}

int far_end_send(const struct far_end *end, const unsigned char *frame)
{
	const struct sockaddr *to = end->address_length ? (const struct sockaddr *)&end->address : NULL;

	if (sendto(end->fd, frame, end->format.size, MSG_DONTWAIT, to, end->address_length) >= 0)
		return 0;
	/* The answer to an earlier frame: nobody listens. The kernel reports it once, and sent nothing. */
	if (errno == ECONNREFUSED &&
	    sendto(end->fd, frame, end->format.size, MSG_DONTWAIT, to, end->address_length) >= 0)
		return 0;
	return errno;
}

static void take_with_control(const struct far_end *end, int flags, struct far_end_frame *frame)
{
	struct iovec data = {.iov_base = frame->data, .iov_len = sizeof(frame->data)};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = frame->control,
				 .msg_controllen = sizeof(frame->control)};

	frame->length = recvmsg(end->fd, &message, flags);
	frame->control_length = frame->length < 0 ? 0 : message.msg_controllen;
}

void far_end_receive(const struct far_end *end, bool wait, struct far_end_frame *frame)
{
	const int flags = wait ? 0 : MSG_DONTWAIT;

	if (end->hardware_stamps) {
		take_with_control(end, flags, frame);
		return;
	}
	frame->length = recv(end->fd, frame->data, sizeof(frame->data), flags);
	frame->control_length = 0;
}

void far_end_take_sent(const struct far_end *end, struct far_end_frame *frame)
{
	take_with_control(end, MSG_ERRQUEUE | MSG_DONTWAIT, frame);
}

void far_end_report(const struct far_end *end, bool on)
{
	const int flags = SOF_TIMESTAMPING_TX_SOFTWARE | (on ? SOF_TIMESTAMPING_SOFTWARE : 0);

	if (!end->hardware_stamps)
		setsockopt(end->fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
}

int64_t far_end_dropped(const struct far_end *end)
{
	uint32_t about[SK_MEMINFO_VARS] = {0};
	socklen_t length = sizeof(about);

	return getsockopt(end->fd, SOL_SOCKET, SO_MEMINFO, about, &length) ? 0 : about[SK_MEMINFO_DROPS];
}

struct far_end_stamps far_end_stamps(struct far_end_frame *frame)
{
	struct msghdr message = {.msg_control = frame->control, .msg_controllen = frame->control_length};

	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		/* Seconds and ns, 64 bits each, because time_t has 64: software, nothing, hardware. */
		int64_t stamps[3][2];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SO_TIMESTAMPING ||
		    c->cmsg_len < CMSG_LEN(sizeof(stamps)))
			continue;
		memcpy(stamps, CMSG_DATA(c), sizeof(stamps));
		return (struct far_end_stamps){.software_ns = stamps[0][0] * NS_PER_S + stamps[0][1],
					       .hardware_ns = stamps[2][0] * NS_PER_S + stamps[2][1]};
	}
	return (struct far_end_stamps){0};
}

struct far_end_stamps far_end_arrival(const struct far_end *end, struct far_end_frame *frame)
{
	struct timespec software;

	if (end->hardware_stamps)
		return far_end_stamps(frame);
	if (end->stamps_error || ioctl(end->fd, SIOCGSTAMPNS, &software))
		return (struct far_end_stamps){0};
	return (struct far_end_stamps){.software_ns = timespec_ns(&software)};
}
