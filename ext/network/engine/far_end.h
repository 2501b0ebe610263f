/* SPDX-License-Identifier: MIT */
/*
 * The far end of a network path, and the socket to it: icmp:ADDRESS, udp:ADDRESS:PORT,
 * eth:INTERFACE,MAC[,ETHERTYPE] or ethercat:INTERFACE. No name is resolved, because the host gives
 * addresses.
 */
#ifndef RTGAUGE_FAR_END_H
#define RTGAUGE_FAR_END_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "ext/network/engine/frame.h"

struct far_end {
	/* set before far_end_open */
	const char *path;
	size_t size;	      /* bytes to send; 0: as few as possible */
	int64_t priority;     /* SO_PRIORITY */
	int64_t busy_poll_us; /* SO_BUSY_POLL */

	int fd;
	struct frame_format format;
	struct sockaddr_storage address; /* where each frame goes, if the socket is not connected to it */
	socklen_t address_length;	 /* 0: the socket is connected */
	char interface[IF_NAMESIZE];	 /* empty: not known */
	int stamps_error;		 /* why the kernel makes no time stamps; 0: it does */
	bool hardware_stamps;		 /* the network card stamps all frames, too */
};

/* A received frame, or a copy of a sent one: its data, and what the kernel says about it. */
struct far_end_frame {
	ssize_t length; /* -1: none, errno says why */
	unsigned char data[FRAME_MAX + 128];
	_Alignas(size_t) char control[512]; /* of cmsghdr structs */
	size_t control_length;		    /* 0: the kernel was not asked */
};

/* Opens the socket. Returns 0, or the exit status after an `error` line. */
int far_end_open(struct far_end *end);

/* Sends a frame. Returns 0 or an errno. */
int far_end_send(const struct far_end *end, const unsigned char *frame);

/* Takes a received frame; waits for it, or not. A signal ends the wait. */
void far_end_receive(const struct far_end *end, bool wait, struct far_end_frame *frame);

/* Takes a copy of a sent frame, which has its time stamp, without waiting. Between the two calls of
 * far_end_report. */
void far_end_take_sent(const struct far_end *end, struct far_end_frame *frame);

/* Begins or ends to report the time stamps of sent frames. While the kernel reports them, it also writes a
 * control message for each received frame, which takes time in the response. */
void far_end_report(const struct far_end *end, bool on);

/* Returns how many received frames the socket had no room for, or found damaged; 0 also for Ethernet frames.
 */
int64_t far_end_dropped(const struct far_end *end);

/* The time stamps of a frame in ns; 0: it has none. */
struct far_end_stamps {
	int64_t software_ns; /* the kernel's, CLOCK_REALTIME */
	int64_t hardware_ns; /* the network card's, on its own clock */
};

/* Returns the time stamps in the frame's control messages. */
struct far_end_stamps far_end_stamps(struct far_end_frame *frame);

/*
 * Returns the time stamps of the frame that was received last. Call it after the clock was read: it makes a
 * system call, which returns the time of that call if the kernel did not stamp the frame.
 */
struct far_end_stamps far_end_arrival(const struct far_end *end, struct far_end_frame *frame);

#endif
