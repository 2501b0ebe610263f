// SPDX-License-Identifier: MIT
/*
 * Joins a connection that may break to a guard that outlives it. The host's words go into the guard's
 * FIFO, and the file that the program writes goes to the host. The verb wakes only if there is something
 * to copy, because it runs during a measurement.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/options.h"
#include "agent/process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/verbs.h"

#define PIECE 4096 /* PIPE_BUF: if poll reports room, this much fits without waiting */
#define STATUS_MAX (1 << 20)
#define NO_PIDFD_MS 250
#define KILLED 137

struct attach {
	int input, output, status, notify, end; /* end: a pidfd, -1 if the kernel has none */
	pid_t pid;
	int64_t start; /* start time of that process; -1: it has ended */
	int64_t idle_ns, heard;
	bool drained;
	char line[PIECE];
	size_t used;
	bool too_long;
	char piece[PIECE];
	size_t piece_len, piece_done;
};

static int open_in(int dir, const char *name, int flags)
{
	return openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
}

/* Opens the files of the folder. Returns 0, or the exit status after an `error` line. */
static int open_all(struct attach *a, const char *folder)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int lock = dir < 0 ? -1 : open_in(dir, "attached", O_RDWR | O_CREAT);
	struct stat st;

	/* The lock's descriptor stays open until the end of the process. */
	if (lock < 0)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "%.200s cannot be used: %s", folder,
				  errname(errno));
	if (flock(lock, LOCK_EX | LOCK_NB))
		return error_line(
			STATUS_CANNOT_MEASURE, "attached",
			"another connection already follows this program; wait until that run ends, or end "
			"it");
	a->input = open_in(dir, "input", O_RDWR);
	a->output = open_in(dir, "output", O_RDONLY);
	a->status = open_in(dir, "status", O_RDONLY);
	close(dir);
	if (a->input < 0 || a->output < 0 || a->status < 0)
		return error_line(STATUS_CANNOT_MEASURE, "internal",
				  "%.200s is not the folder of a guard: "
				  "%s",
				  folder, errname(errno));
	if (fstat(a->input, &st) || !S_ISFIFO(st.st_mode))
		return error_line(STATUS_CANNOT_MEASURE, "internal",
				  "%.200s is not the folder of a guard: "
				  "input is not a FIFO",
				  folder);
	return 0;
}

static void watch(struct attach *a, const char *folder)
{
	struct process process;
	char path[PATH_MAX];

	a->start =
		process_read(a->pid, &process) && process_lives(a->pid, process.start) ? process.start : -1;
	a->end = -1;
#ifdef SYS_pidfd_open
	if (a->start >= 0)
		a->end = (int)syscall(SYS_pidfd_open, a->pid, 0);
#endif
	a->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	snprintf(path, sizeof(path), "%s/output", folder);
	if (a->notify >= 0)
		inotify_add_watch(a->notify, path, IN_MODIFY);
}

/* Handles a word from the host: `end` is for the guard; all other words go to its input. */
static void take_line(struct attach *a)
{
	size_t len = a->used;

	a->heard = clock_now_ns(CLOCK_MONOTONIC);
	a->used = 0;
	if (a->too_long) {
		a->too_long = false;
		return;
	}
	if (len == 3 && !memcmp(a->line, "end", 3)) {
		if (a->start >= 0 && process_lives(a->pid, a->start))
			kill(a->pid, SIGTERM);
		return;
	}
	a->line[len] = '\n';
	/* A guard whose FIFO is full does not read, because it is ending. */
	if (write(a->input, a->line, len + 1) < 0)
		return;
}

/* Returns false if the host is gone. */
static bool take_input(struct attach *a)
{
	char buffer[PIECE];
	ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	for (ssize_t i = 0; i < n; i++) {
		if (buffer[i] == '\n')
			take_line(a);
		else if (a->used < sizeof(a->line) - 1)
			a->line[a->used++] = buffer[i];
		else
			a->too_long = true;
	}
	return n > 0;
}

/* Reads the next piece of the output, if the last piece is written. */
static void fill(struct attach *a)
{
	ssize_t n;

	if (a->piece_done < a->piece_len)
		return;
	n = read(a->output, a->piece, sizeof(a->piece));
	a->piece_done = 0;
	a->piece_len = n > 0 ? (size_t)n : 0;
	a->drained = n <= 0;
}

static bool put(struct attach *a)
{
	ssize_t n = write(STDOUT_FILENO, a->piece + a->piece_done, a->piece_len - a->piece_done);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	a->piece_done += (size_t)n;
	return true;
}

static bool over(const struct attach *a)
{
	return a->start < 0 || !process_lives(a->pid, a->start);
}

/* Returns the exit status that the guard's last event names. */
static int told_status(const struct attach *a)
{
	static const char event[] = "\"event\":\"ended\"", member[] = "\"status\":";
	struct bytes bytes;
	int status = KILLED;
	char *at;

	if (file_read_fd(a->status, STATUS_MAX, &bytes))
		return status;
	at = strstr(bytes.data, event);
	at = at ? strstr(at, member) : NULL;
	if (at)
		status = (int)strtol(at + sizeof(member) - 1, NULL, 10);
	free(bytes.data);
	return status;
}

static int timeout_ms(const struct attach *a)
{
	int64_t left = a->heard + a->idle_ns - clock_now_ns(CLOCK_MONOTONIC);
	int64_t ms = left <= 0 ? 0 : left / 1000000 + 1;
	int64_t longest = a->end < 0 && a->start >= 0 ? NO_PIDFD_MS : 3600000;

	return (int)(ms < longest ? ms : longest);
}

/* Distinguishes this verb's own words from the program's. They are the very first line, and the last one
 * on standard error. */
static void say(FILE *out, const char *event, int status)
{
	struct json j;

	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "attach");
	json_str(&j, "event", event);
	if (status >= 0)
		json_int(&j, "status", status);
	json_close(&j, '}');
	json_line(&j);
}

/* Runs until the guard has ended and all its output is copied, or until the host is gone. Returns the exit
 * status. */
static int carry(struct attach *a)
{
	char events[PIECE];
	bool ended = false;

	for (;;) {
		/* Ask first whether it has ended, and then read its output: nothing can follow. */
		ended = ended || over(a);
		fill(a);
		if (ended && a->drained && a->piece_done == a->piece_len) {
			int status = told_status(a);

			say(stderr, "ended", status);
			return status;
		}
		struct pollfd fds[] = {
			{.fd = STDIN_FILENO, .events = POLLIN},
			{.fd = STDOUT_FILENO, .events = a->piece_len > a->piece_done ? POLLOUT : 0},
			{.fd = a->notify, .events = POLLIN},
			{.fd = ended ? -1 : a->end, .events = POLLIN},
		};
		if (poll(fds, 4, timeout_ms(a)) < 0 && errno != EINTR)
			return STATUS_CANNOT_MEASURE;
		if (fds[2].revents)
			while (read(a->notify, events, sizeof(events)) > 0)
				;
		if ((fds[0].revents && !take_input(a)) || (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)))
			return STATUS_CANNOT_MEASURE;
		if ((fds[1].revents & POLLOUT) && !put(a))
			return STATUS_CANNOT_MEASURE;
		if (clock_now_ns(CLOCK_MONOTONIC) - a->heard > a->idle_ns)
			return STATUS_CANNOT_MEASURE;
	}
}

static int verb_attach(int argc, char **argv)
{
	/* Large, and therefore not initialised here, because the program's file would then contain it. */
	static struct attach a;
	const char *folder = NULL;
	int64_t pid = 0, from = 0;
	const struct option_entry table[] = {
		{.name = "folder",
		 .kind = OPTION_TEXT,
		 .value = &folder,
		 .help = "folder with the files of the guard"},
		{.name = "pid",
		 .kind = OPTION_INT,
		 .value = &pid,
		 .min = 1,
		 .max = INT32_MAX,
		 .help = "process ID of the guard"},
		{.name = "from",
		 .kind = OPTION_INT,
		 .value = &from,
		 .min = 0,
		 .max = INT64_MAX,
		 .help = "where to begin: the first byte of the output to send"},
		{.name = "idle-ns",
		 .kind = OPTION_INT,
		 .value = &a.idle_ns,
		 .min = 1000000,
		 .max = INT64_MAX / 4,
		 .help = "end `attach` if the host sends nothing for this long"},
		{0},
	};
	int status;

	a.idle_ns = 15 * NS_PER_S;
	status = options_parse(table, argc, argv);
	if (status)
		return status < 0 ? STATUS_OK : status;
	if (!folder || !pid || strlen(folder) > PATH_MAX - 100)
		return usage_error(
			"attach needs --folder DIR, and --pid PID of the guard that was started in this "
			"folder");
	signal(SIGPIPE, SIG_IGN);
	status = open_all(&a, folder);
	if (status)
		return status;
	if (lseek(a.output, from, SEEK_SET) < 0)
		return usage_error("--from %lld: %s", (long long)from, errname(errno));
	a.pid = (pid_t)pid;
	a.heard = clock_now_ns(CLOCK_MONOTONIC);
	watch(&a, folder);
	say(stdout, "attached", -1);
	return carry(&a);
}

AGENT_VERB("attach", verb_attach,
	   "connect again to a guarded program that continued after its connection "
	   "broke")
