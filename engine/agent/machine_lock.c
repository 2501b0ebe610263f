// SPDX-License-Identifier: MIT
#include "agent/machine_lock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "agent/text.h"
#include "rt/clock.h"

#define ANSWER_NS NS_PER_S
#define RETRY_NS (NS_PER_S / 100)

static socklen_t address(const char *name, struct sockaddr_un *un)
{
	size_t len = strnlen(name, sizeof(un->sun_path) - 1);

	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(un->sun_path + 1, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

void machine_lock_parse(char *line, struct holder *holder)
{
	struct scan scan = {.at = line};
	const char *run, *label;

	holder->run[0] = holder->label[0] = '\0';
	scan_literal(&scan, "{\"type\":\"lock\",\"run\":");
	run = scan_text(&scan);
	scan_literal(&scan, ",\"label\":");
	label = scan_text(&scan);
	scan_literal(&scan, ",\"pid\":");
	scan_int(&scan, 1, INT32_MAX);
	scan_literal(&scan, "}\n");
	if (scan.wrong || !text_is_id(run) || !text_is_plain(label, sizeof(holder->label) - 1))
		return;
	snprintf(holder->run, sizeof(holder->run), "%s", run);
	snprintf(holder->label, sizeof(holder->label), "%s", label);
}

/* false: nobody holds it any more. */
static bool ask_holder(const char *name, struct holder *holder)
{
	struct sockaddr_un un;
	socklen_t len = address(name, &un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int64_t end_ns = clock_now_ns(CLOCK_MONOTONIC) + ANSWER_NS, left_ns;
	char line[1024];
	size_t used = 0;
	ssize_t n = 1;
	struct ucred who;
	socklen_t who_len = sizeof(who);

	*holder = (struct holder){0};
	if (fd < 0)
		return true;
	if (connect(fd, (struct sockaddr *)&un, len)) {
		bool held = errno != ECONNREFUSED;

		close(fd);
		return held;
	}
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len))
		holder->pid = who.pid;
	while (n > 0 && used < sizeof(line) - 1 && (left_ns = end_ns - clock_now_ns(CLOCK_MONOTONIC)) > 0) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};

		if (poll(&ready, 1, (int)(left_ns / 1000000) + 1) <= 0)
			break;
		n = read(fd, line + used, sizeof(line) - 1 - used);
		if (n > 0)
			used += (size_t)n;
	}
	line[used] = '\0';
	machine_lock_parse(line, holder);
	close(fd);
	return true;
}

int machine_lock_take(const char *name, struct holder *holder)
{
	struct sockaddr_un un;
	socklen_t len = address(name, &un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = errno;

	for (int tries = 0; fd >= 0 && tries < 10; tries++) {
		if (!bind(fd, (struct sockaddr *)&un, len) && !listen(fd, 64))
			return fd;
		error = errno;
		/* It may end between the two calls, or not listen yet. */
		if (error != EADDRINUSE || ask_holder(name, holder))
			break;
		clock_pause_ns(RETRY_NS);
	}
	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

void machine_lock_answer(int lock, const struct holder *self)
{
	int fd = accept4(lock, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	char *line = NULL;
	size_t len = 0;
	FILE *out = fd < 0 ? NULL : open_memstream(&line, &len);
	struct json j;

	if (out) {
		json_start(&j, out);
		json_open(&j, NULL, '{');
		json_str(&j, "type", "lock");
		json_str(&j, "run", self->run);
		json_str(&j, "label", self->label);
		json_int(&j, "pid", self->pid);
		json_close(&j, '}');
		json_line(&j);
		fclose(out);
		if (send(fd, line, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
			errno = 0; /* who asked sees the number of this process at least */
		free(line);
	}
	if (fd >= 0)
		close(fd);
}
