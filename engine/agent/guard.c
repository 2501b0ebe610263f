// SPDX-License-Identifier: MIT
/* The verb `guard`: its options, the lock, and its first and last lines. guard_loop.c has everything
 * between. */
#include "agent/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "agent/journal.h"
#include "agent/options.h"
#include "agent/process.h"
#include "agent/programs.h"
#include "agent/restore.h"
#include "agent/text.h"
#include "base/error.h"
#include "base/json.h"
#include "base/verbs.h"

#define LOCK_DIR_MAX 1000

struct wish {
	const char *lock_dir, *journal;
	bool lock, restore;
	int64_t status_fd;
	char **program; /* NULL: a session */
};

static int parse(int argc, char **argv, struct guard *guard, struct wish *wish)
{
	const char *run = NULL, *label = "";
	const struct option_entry table[] = {
		{.shared = agent_option_run, .value = &run},
		{.name = "label",
		 .kind = OPTION_TEXT,
		 .value = &label,
		 .help = "description of this run, shown to another run that finds the machine locked",
		 .may_be_empty = true},
		{.name = "host-pid",
		 .kind = OPTION_INT,
		 .value = &guard->self.host_pid,
		 .min = 1,
		 .max = INT32_MAX,
		 .help = "process ID of the run, if it is on this machine; shown to another run that finds "
			 "the machine locked"},
		{.name = "lease-ns",
		 .kind = OPTION_INT,
		 .value = &guard->lease_ns,
		 .min = 1000000,
		 .max = INT64_MAX / 4,
		 .help = "end the program if `renew` does not come for this long"},
		{.name = "grace-ns",
		 .kind = OPTION_INT,
		 .value = &guard->grace_ns,
		 .min = 0,
		 .max = 3600 * NS_PER_S,
		 .help = "how long to wait after SIGTERM before ending the program with SIGKILL"},
		{.name = "detach",
		 .kind = OPTION_FLAG,
		 .value = &guard->detach,
		 .help = "keep the program running when standard input ends"},
		{.name = "lock",
		 .kind = OPTION_FLAG,
		 .value = &wish->lock,
		 .help = "lock this machine for this run"},
		{.name = "lock-dir",
		 .kind = OPTION_TEXT,
		 .value = &wish->lock_dir,
		 .help = "folder of the lock"},
		{.name = "wait-ns",
		 .kind = OPTION_INT,
		 .value = &guard->wait_ns,
		 .min = 0,
		 .max = INT64_MAX / 4,
		 .help = "how long to wait for the lock; 0: do not wait"},
		{.name = "restore",
		 .kind = OPTION_FLAG,
		 .value = &wish->restore,
		 .help = "put the run's settings back at the end"},
		{.shared = agent_option_journal, .value = &wish->journal},
		{.name = "status-fd",
		 .kind = OPTION_INT,
		 .value = &wish->status_fd,
		 .min = 3,
		 .max = INT_MAX,
		 .help = "file descriptor to which the guard writes events"},
		{0},
	};
	bool dashes;
	int rest, status = options_parse_operands(table, " [-- PROGRAM ARG...]", argc, argv, &rest, &dashes);

	if (!status)
		status = agent_check_run(run);
	if (status)
		return status;
	if (!text_is_plain(label, sizeof(guard->self.label) - 1))
		return usage_error("--label must be one line of UTF-8, at most 256 bytes");
	if (wish->lock_dir && strlen(wish->lock_dir) > LOCK_DIR_MAX)
		return usage_error("the path of --lock-dir may have at most %d bytes", LOCK_DIR_MAX);
	if (wish->status_fd >= 0 && fcntl((int)wish->status_fd, F_GETFD) < 0)
		return usage_error("--status-fd: descriptor %lld is not open", (long long)wish->status_fd);
	if (rest < argc && !dashes)
		return usage_error("'%.100s' is not an option; give the program to guard after --",
				   argv[rest]);
	if (rest == argc && dashes)
		return usage_error("no program was given; give the program to guard after --");
	strcpy(guard->self.run, run);
	strcpy(guard->self.label, label);
	wish->program = rest < argc ? argv + rest : NULL;
	return 0;
}

static void json_known(struct json *j, const char *name, int64_t value, bool known)
{
	if (known)
		json_int(j, name, value);
	else
		json_null(j, name);
}

/* Writes the members that the event `waiting` and the error `locked` share. */
static void write_holder(struct json *j, const struct guard *guard, const struct holder *holder)
{
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC), lease_end_ns = holder->heard_ns + holder->lease_ns;
	bool known = *holder->run;

	json_str(j, "lock", guard->lock.path);
	json_str(j, "run", known ? holder->run : NULL);
	json_str(j, "label", known ? holder->label : NULL);
	json_known(j, "pid", holder->pid, holder->pid);
	json_known(j, "uid", holder->uid, holder->uid >= 0);
	json_known(j, "host_pid", holder->host_pid, known && holder->host_pid);
	json_known(j, "silent_ns", now_ns - holder->heard_ns,
		   known && machine_lock_is_silent(holder, now_ns));
	json_known(j, "lease_left_ns", lease_end_ns > now_ns ? lease_end_ns - now_ns : 0, known);
	json_known(j, "left_ns", holder->ends_ns > now_ns ? holder->ends_ns - now_ns : 0,
		   known && holder->ends_ns);
	json_bool(j, "elsewhere", known && holder->pid_namespace != machine_lock_pid_namespace());
}

static int say_locked(struct guard *guard, int error)
{
	struct holder holder;
	struct json j;

	if (geteuid() && error == EPERM && !strncmp(guard->lock.path, "/tmp/", 5))
		return error_line(
			STATUS_CANNOT_MEASURE, "lock",
			"the folder of %.300s belongs to another user, or others can write to it: let root "
			"remove it, or make /run/user/%u for this user",
			guard->lock.path, geteuid());
	if (error == EPERM || error == ELOOP || error == ENXIO || error == EISDIR)
		return error_line(STATUS_CANNOT_MEASURE, "lock",
				  "other users could replace %.300s (%s): remove it or its folder",
				  guard->lock.path, errname(error));
	if (error != EWOULDBLOCK)
		return error_line(
			STATUS_CANNOT_MEASURE, "lock",
			"cannot open %.300s, the lock of this machine (%s): create its folder, or make it "
			"writable",
			guard->lock.path, errname(error));
	machine_lock_holder(&guard->lock, &holder);
	error_begin(&j, "locked", 0, "this machine is held by run %s%s%s",
		    *holder.run ? holder.run : "(it does not say which run)", *holder.label ? ", " : "",
		    holder.label);
	write_holder(&j, guard, &holder);
	return error_end(&j, STATUS_CANNOT_MEASURE);
}

static FILE *waiting_events;

static void say_waiting(const struct guard *guard, const struct holder *holder)
{
	struct json j;

	json_start(&j, waiting_events);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "guard");
	json_str(&j, "event", "waiting");
	write_holder(&j, guard, holder);
	json_close(&j, '}');
	json_line(&j);
}

static void say_started(const struct guard *guard, FILE *out)
{
	struct json j;

	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "guard");
	json_str(&j, "event", "started");
	json_int(&j, "guard", getpid());
	if (guard->program)
		json_int(&j, "pid", guard->program);
	else
		json_null(&j, "pid");
	json_int(&j, "lease_ns", guard->lease_ns);
	json_close(&j, '}');
	json_line(&j);
}

static void say_ended(const struct guard *guard, bool restored, FILE *out)
{
	struct json j;

	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "guard");
	json_str(&j, "event", "ended");
	json_int(&j, "status", guard->status);
	if (guard->signal)
		json_int(&j, "signal", guard->signal);
	else
		json_null(&j, "signal");
	json_str(&j, "reason", guard->reason);
	json_uint(&j, "killed", guard->killed);
	json_uint(&j, "remaining", guard->remaining);
	json_uint(&j, "dropped_lines", guard->dropped);
	json_bool(&j, "restored", restored);
	json_close(&j, '}');
	json_line(&j);
}

static int prepare(struct guard *guard)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	guard->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (guard->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return error_line(STATUS_CANNOT_MEASURE, "internal", "the guard cannot start: %s",
				  errname(errno));
	/* Leaves the terminal or connection, which may close. This fails only if the process already leads
	 * a process group. */
	if (guard->detach)
		setsid();
	return 0;
}

/* Returns the descriptor for events, which is never a program's standard output. */
static FILE *open_events(const struct wish *wish)
{
	if (wish->status_fd >= 0) {
		fcntl((int)wish->status_fd, F_SETFD, FD_CLOEXEC);
		return fdopen((int)wish->status_fd, "w");
	}
	return wish->program ? fopen("/dev/null", "we") : stdout;
}

/*
 * Restores all settings and releases the lock before it writes a word, so that a slow or dead reader
 * cannot delay this.
 */
static int finish(struct guard *guard, const struct wish *wish, const char *dir, FILE *events)
{
	struct restore_wish restore = {.run = guard->self.run};
	char *lines = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&lines, &len);
	int restored = 0;

	if (wish->program)
		programs_forget(guard->journal);
	if (out && wish->restore)
		restored = restore_settings(dir, &restore, out);
	machine_lock_close(&guard->lock);
	if (out && !fclose(out))
		fwrite(lines, 1, len, events);
	free(lines);
	say_ended(guard, wish->restore && out && !restored, events);
	if (wish->program)
		return guard->start_error ? STATUS_CANNOT_MEASURE : guard->status;
	return restored;
}

static int run(struct guard *guard, struct wish *wish, const char *dir, FILE *events)
{
	struct restore_wish stale = {.stale = true};
	int error = wish->lock ? machine_lock_open(&guard->lock, wish->lock_dir) : 0;

	if (wish->lock) {
		waiting_events = events;
		error = error ? error : guard_take_lock(guard, say_waiting);
		if (error)
			return say_locked(guard, error);
		restore_settings(dir, &stale, events);
	}
	if (wish->program)
		guard_start(guard, wish->program);
	if (wish->program && guard->note_error) {
		error_line(
			STATUS_CANNOT_MEASURE, "program",
			"'%.200s' was not started, because the journal %s/journal.ndjson cannot be written (%s) and this run has settings to put back",
			wish->program[0], dir, errname(guard->note_error));
	} else if (wish->program && guard->start_error) {
		error_line(STATUS_CANNOT_MEASURE, "program", "'%.200s' cannot be started: %s%s",
			   wish->program[0], errname(guard->start_error),
			   guard->start_error == ENOENT ? " (it is not installed here)" : "");
	} else {
		say_started(guard, events);
		guard_loop(guard);
	}
	return finish(guard, wish, dir, events);
}

static int verb_guard(int argc, char **argv)
{
	struct guard guard = {
		.lease_ns = 10 * NS_PER_S, .grace_ns = 2 * NS_PER_S, .lock.fd = -1, .program_in = -1};
	struct wish wish = {.status_fd = -1};
	struct process self = {0};
	FILE *events;
	char *dir = NULL;
	int status;

	status = parse(argc, argv, &guard, &wish);
	if (!status && (wish.restore || wish.lock))
		status = agent_find_journal(wish.journal, &dir);
	else if (!status)
		dir = journal_dir(wish.journal);
	if (status)
		return status < 0 ? STATUS_OK : status;
	process_read(getpid(), &self);
	guard.journal = dir;
	guard.self.pid = getpid();
	guard.self.start = self.start;
	guard.self.pid_namespace = machine_lock_pid_namespace();
	guard.self.lease_ns = guard.lease_ns;
	events = open_events(&wish);
	status = events ? prepare(&guard)
			: error_line(STATUS_CANNOT_MEASURE, "output", "--status-fd: %s", errname(errno));
	if (!status)
		status = run(&guard, &wish, dir, events);
	free(dir);
	if (events && events != stdout)
		fclose(events);
	return status;
}

AGENT_VERB("guard", verb_guard,
	   "run a program as long as the host renews its lease, then end the program and put settings back")
