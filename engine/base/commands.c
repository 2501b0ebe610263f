// SPDX-License-Identifier: MIT
#include "base/commands.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_MAX_BYTES 64

_Atomic bool commands_stopped, commands_watched;

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
#define STOP_SIGNALS (sizeof(stop_signals) / sizeof(stop_signals[0]))

_Thread_local volatile sig_atomic_t commands_woken;

static bool listening, going;
static int wakes = -1;
static char line[LINE_MAX_BYTES];
static size_t line_length;
static struct moment_request requests[MOMENT_REQUESTS];
static unsigned int request_count;

static void on_signal(int number)
{
	(void)number;
	atomic_store(&commands_stopped, true);
}

/* Interrupts a sleep, so that a measuring thread with a long interval notices the stop flag. */
static void on_wake(int number)
{
	(void)number;
	commands_woken = 1;
}

void commands_begin(bool listen)
{
	struct sigaction stop = {.sa_handler = on_signal}, wake = {.sa_handler = on_wake}, before;

	for (size_t i = 0; i < STOP_SIGNALS; i++) {
		if (sigaction(stop_signals[i], NULL, &before) || before.sa_handler != SIG_IGN)
			sigaction(stop_signals[i], &stop, NULL);
	}
	sigaction(SIGUSR1, &wake, NULL);
	signal(SIGPIPE, SIG_IGN);
	listening = listen;
	going = !listen;
	wakes = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

void commands_leave_to_main(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < STOP_SIGNALS; i++)
		sigaddset(&set, stop_signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Takes `moment TIME_NS TID NUMBER`. Anything else is not a command. */
static void take_moment(const char *words)
{
	struct moment_request request;
	char *end;

	request.time_ns = strtoll(words, &end, 10);
	request.tid = (pid_t)strtol(end, &end, 10);
	request.number = strtoll(end, &end, 10);
	if (!*end && request.time_ns > 0 && request.number > 0 && request.tid >= 0 &&
	    request_count < MOMENT_REQUESTS)
		requests[request_count++] = request;
}

bool commands_moment(struct moment_request *request)
{
	if (!request_count)
		return false;
	*request = requests[0];
	memmove(requests, requests + 1, --request_count * sizeof(*requests));
	return true;
}

static void take_byte(char byte)
{
	if (byte != '\n') {
		/* A line that is too long is not a command. It is discarded, with its rest. */
		if (line_length < sizeof(line))
			line[line_length++] = byte;
		return;
	}
	if (line_length == 2 && !memcmp(line, "go", 2))
		going = true;
	else if (line_length == 4 && !memcmp(line, "stop", 4))
		atomic_store(&commands_stopped, true);
	else if (line_length == 5 && !memcmp(line, "watch", 5))
		atomic_store(&commands_watched, true);
	else if (line_length == 7 && !memcmp(line, "unwatch", 7))
		atomic_store(&commands_watched, false);
	else if (line_length > 7 && line_length < sizeof(line) && !memcmp(line, "moment ", 7)) {
		line[line_length] = '\0';
		take_moment(line + 7);
	}
	line_length = 0;
}

void commands_wait(int64_t timeout_ns)
{
	struct pollfd in[] = {{.fd = listening ? STDIN_FILENO : -1, .events = POLLIN},
			      {.fd = wakes, .events = POLLIN}};
	struct timespec timeout = ns_timespec(timeout_ns);
	char bytes[256];
	ssize_t len;

	if (atomic_load(&commands_stopped) || ppoll(in, 2, timeout_ns < 0 ? NULL : &timeout, NULL) <= 0)
		return;
	if (in[1].revents)
		(void)!read(wakes, bytes, sizeof(bytes));
	if (!in[0].revents)
		return;
	len = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (len < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (len <= 0) {
		listening = false;
		atomic_store(&commands_stopped, true);
		return;
	}
	for (ssize_t i = 0; i < len; i++)
		take_byte(bytes[i]);
}

void commands_wake(void)
{
	(void)!write(wakes, &(uint64_t){1}, sizeof(uint64_t));
}

bool commands_wait_go(void)
{
	while (!going && !atomic_load(&commands_stopped))
		commands_wait(NS_PER_S);
	return going && !atomic_load(&commands_stopped);
}
