// SPDX-License-Identifier: MIT
/* Ends a run whose host is gone, before its lease is over. It ends the run's programs, and then the
 * session, which restores the settings and releases the lock. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/machine_lock.h"
#include "agent/options.h"
#include "agent/process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/options.h"
#include "base/verbs.h"

#define PATIENCE_NS (15 * NS_PER_S) /* time that a guard has to end its program, or to restore settings */
#define LOOK_NS (NS_PER_S / 20)

/* Returns whether a process of the holder's user is a guard of its run: `ENGINE guard --run ID ...`. */
static bool is_guard(pid_t pid, const struct holder *holder)
{
	char path[64], text[512];
	const char *word = text;
	struct stat st;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = fstat(fd, &st) || st.st_uid != holder->uid ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	for (int i = 0; i < 3; i++) {
		static const char *const wanted[] = {"guard", "--run"};

		word += strlen(word) + 1;
		if (word >= text + n || strcmp(word, i < 2 ? wanted[i] : holder->run))
			return false;
	}
	return true;
}

/* Sends a signal to every guard of the run except the session. Returns false if there is none. */
static bool signal_programs(const struct holder *holder, int number)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	bool found = false;

	while (processes && (entry = readdir(processes))) {
		int64_t pid;

		if (!options_int(entry->d_name, &pid) || pid <= 0 || pid == holder->pid ||
		    !is_guard((pid_t)pid, holder))
			continue;
		found = true;
		kill((pid_t)pid, number);
		kill((pid_t)pid, SIGCONT);
	}
	if (processes)
		closedir(processes);
	return found;
}

static bool lives(const struct holder *holder)
{
	return process_lives((pid_t)holder->pid, holder->start);
}

static void end_run(const struct holder *holder)
{
	for (int number = SIGTERM; number; number = number == SIGTERM ? SIGKILL : 0) {
		int64_t give_up_ns = clock_now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
		bool any = signal_programs(holder, number);

		while (any && clock_now_ns(CLOCK_MONOTONIC) < give_up_ns) {
			clock_pause_ns(LOOK_NS);
			any = signal_programs(holder, 0);
		}
		if (!any)
			break;
	}
	for (int number = SIGTERM; number && lives(holder); number = number == SIGTERM ? SIGKILL : 0) {
		int64_t give_up_ns = clock_now_ns(CLOCK_MONOTONIC) + PATIENCE_NS;

		kill((pid_t)holder->pid, number);
		kill((pid_t)holder->pid, SIGCONT);
		while (lives(holder) && clock_now_ns(CLOCK_MONOTONIC) < give_up_ns)
			clock_pause_ns(LOOK_NS);
	}
}

static int say(const struct holder *holder)
{
	struct json j;

	json_start(&j, stdout);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "release");
	json_str(&j, "run", holder ? holder->run : NULL);
	json_close(&j, '}');
	json_line(&j);
	return STATUS_OK;
}

static int release(struct machine_lock *lock)
{
	struct holder holder;
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

	if (!machine_lock_try(lock))
		return say(NULL);
	machine_lock_holder(lock, &holder);
	if (!*holder.run && holder.pid)
		return error_line(
			STATUS_CANNOT_MEASURE, "release",
			"process %lld of user %lld holds this machine, but does not describe a run; end it "
			"with: kill %lld",
			(long long)holder.pid, (long long)holder.uid, (long long)holder.pid);
	if (!*holder.run)
		return error_line(
			STATUS_CANNOT_MEASURE, "release",
			"the run that holds this machine does not give its ID; end it where it was started");
	if (!machine_lock_is_silent(&holder, now_ns))
		return error_line(
			STATUS_CANNOT_MEASURE, "release",
			"run %s is still running, and its host was heard from %lld s ago; end it where it was started",
			holder.run, (long long)((now_ns - holder.heard_ns) / NS_PER_S));
	if (holder.pid_namespace != machine_lock_pid_namespace())
		return error_line(
			STATUS_CANNOT_MEASURE, "release",
			"run %s is in another PID namespace: repeat this command there, or outside of "
			"containers",
			holder.run);
	end_run(&holder);
	return lives(&holder)
		       ? error_line(
				 STATUS_CANNOT_MEASURE, "release",
				 "this user may not end the guard of run %s (pid %lld): repeat this command "
				 "as its user, or as root",
				 holder.run, (long long)holder.pid)
		       : say(&holder);
}

static int verb_release(int argc, char **argv)
{
	const char *dir = NULL;
	const struct option_entry table[] = {
		{.name = "lock-dir", .kind = OPTION_TEXT, .value = &dir, .help = "folder of the lock"},
		{0},
	};
	struct machine_lock lock;
	int error, status = options_parse(table, argc, argv);

	if (status)
		return status < 0 ? STATUS_OK : status;
	error = machine_lock_open(&lock, dir);
	status = error ? error_line(STATUS_CANNOT_MEASURE, "lock", "cannot open the lock %.300s: %s",
				    lock.path, errname(error))
		       : release(&lock);
	machine_lock_close(&lock);
	return status;
}

AGENT_VERB("release", verb_release, "end the run that holds this machine, if its host is gone")
