// SPDX-License-Identifier: MIT
#include "agent/process.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/text.h"

/* Returns the number at the start of the text; -1 if there is none or it is too large. */
static int64_t number(const char *text, int64_t max)
{
	char *end;
	long long value;

	if (*text < '0' || *text > '9')
		return -1;
	errno = 0;
	value = strtoll(text, &end, 10);
	return errno || value > max || (*end && !isspace((unsigned char)*end)) ? -1 : value;
}

bool process_parse(const char *text, struct process *process)
{
	/* The name in parentheses may contain anything, even parentheses. sscanf would add 120 KiB to a
	 * static program. */
	const char *at = strrchr(text, ')');
	int64_t pid = number(text, INT32_MAX), parent = -1, threads = 0, start = -1;
	char state = '\0';

	for (int field = 3; at && (at = strchr(at, ' ')) && field <= 22; field++) {
		at++;
		if (field == 3)
			state = *at;
		else if (field == 4)
			parent = number(at, INT32_MAX);
		else if (field == 20)
			threads = number(at, INT32_MAX);
		else if (field == 22)
			start = number(at, INT64_MAX);
	}
	*process = (struct process){.pid = (pid_t)pid,
				    .parent = (pid_t)parent,
				    .state = state,
				    .threads = (int)threads,
				    .start = start};
	return pid > 0 && parent >= 0 && start >= 0;
}

bool process_read(pid_t pid, struct process *process)
{
	char path[64];
	struct bytes bytes;
	bool good;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	if (pid <= 0 || file_read(path, 4096, &bytes))
		return false;
	good = process_parse(bytes.data, process);
	free(bytes.data);
	return good;
}

bool process_lives(pid_t pid, int64_t start)
{
	struct process process;

	if (!process_read(pid, &process) || process.start != start)
		return false;
	/* The first thread may end before another thread, which may hang in the kernel. */
	return (process.state != 'Z' && process.state != 'X') || process.threads > 1;
}

static int send(int fd, pid_t pid, int number)
{
#ifdef SYS_pidfd_send_signal
	if (fd >= 0)
		return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) ? errno : 0;
#endif
	return kill(pid, number) ? errno : 0;
}

int process_signal(pid_t pid, int64_t start, int number)
{
	int fd = -1, error;

	/* While this is open, the pid cannot be reused, so check the process afterwards. */
#ifdef SYS_pidfd_send_signal
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
#endif
	error = process_lives(pid, start) ? send(fd, pid, number) : ESRCH;
	if (!error && number != SIGKILL && number != SIGSTOP)
		error = send(fd, pid, SIGCONT);
	if (fd >= 0)
		close(fd);
	return error;
}
