// SPDX-License-Identifier: MIT
/*
 * record: watches one program for weeks and keeps the largest latencies with their events in a spool, without
 * a host. It runs one `watch` after another, and puts their lines into the folder. It explains nothing: that
 * is for the host (`rtgauge recorder import`).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/file.h"
#include "agent/process.h"
#include "base/boot_id.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/options.h"
#include "base/tracefs.h"
#include "base/verbs.h"
#include "ext/recorder/engine/age.h"
#include "ext/recorder/engine/spool.h"
#include "trace/tracepoints.h"

#define PREFIX "rtgauge-recorder-"
#define SETTINGS "spool.json"
#define GROUP_PREFIX "rtgauge_recorder_" /* of the events that belong to such an instance */
#define LOOK_NS NS_PER_S
#define SESSION_NS (3600 * NS_PER_S)
#define SESSION_LEAST_NS (300 * NS_PER_S)
#define SESSION_MOMENTS 150 /* a `watch` keeps 200 */
#define WINDOW_NS (900 * NS_PER_S)
#define BEFORE_NS (NS_PER_S / 50) /* a session stops so long before the next one measures */
#define WAIT_MIN_NS NS_PER_S
#define WAIT_MAX_NS (60 * NS_PER_S)
#define LIVED_NS (10 * NS_PER_S) /* a session that lasts so long has worked */
#define ARM_NS (60 * NS_PER_S)	 /* a session arms within this time, */
#define END_NS (10 * NS_PER_S)	 /* and ends within this one after `stop` */
#define SUSPENDED_NS (NS_PER_S / 100)
#define CLOCKS_TOGETHER_NS (NS_PER_S / 1000)
#define CLOCK_TRIES 20
#define BUFFER_KB 4096
#define BUFFER_KB_MIN 512
#define BUFFER_NS 20000000 /* time between two readings for BUFFER_KB_MIN */
#define MEMORY_PART 64
#define LINE_MAX_LEN (8U << 20)
#define PIECE (64U << 10)
#define SERIES_MAX 256
#define ARGUMENTS_MAX 64
#define HOUR_S 3600
#define COMM_LEN 15

static const char *folder, *program, *unit, *settings = "{}";
static int64_t keep_bytes = INT64_C(50) << 20, for_ns;

static const struct option_entry table[] = {
	{.name = "folder", .kind = OPTION_TEXT, .value = &folder, .help = "folder to record into"},
	{.name = "program", .kind = OPTION_TEXT, .value = &program, .help = "name of the program to record"},
	{.name = "unit",
	 .kind = OPTION_TEXT,
	 .value = &unit,
	 .help = "systemd unit whose main process is the program, instead of --program"},
	{.name = "keep-bytes",
	 .kind = OPTION_INT,
	 .value = &keep_bytes,
	 .min = SPOOL_BYTES_MIN,
	 .max = INT64_C(1) << 40,
	 .help = "the most that the folder may take"},
	{.name = "for-ns",
	 .kind = OPTION_INT,
	 .value = &for_ns,
	 .min = 0,
	 .max = INT64_MAX / 2,
	 .help = "how long to record from the first start in this folder; 0: until stopped"},
	{.name = "settings", .kind = OPTION_TEXT, .value = &settings, .help = "text for the file spool.json"},
	{0},
};

/* One running `watch`. */
struct session {
	pid_t pid; /* 0: none */
	struct process program;
	int in, out;
	struct spool_file file;
	char *line;
	size_t len, size;
	char *task[SERIES_MAX]; /* of each series, as the `series` line writes it */
	char instances[2][80];
	int64_t begun_ns, from_ns; /* from_ns: it measures; 0: not known yet */
	int64_t windows_ns;	   /* a window came after the clocks were written; 0: none */
	int64_t suspended_ns;	   /* how long the machine had slept when it began */
	unsigned int formats, moments;
	int64_t stopped_ns; /* when it was asked to stop */
	const char *killed; /* why it was killed; NULL: it was not */
	bool armed, stopping, ended_in_order, program_ended;
};

static struct {
	struct spool spool;
	struct age age; /* of the spool */
	struct session sessions[2];
	struct session *now, *next;
	char **watch;
	int watch_count;
	int root, instances; /* of tracefs, and the folder of all its instances */
	unsigned int number;
	int64_t start; /* of this process, in clock ticks since boot */
	int64_t wait_ns, again_ns;
	char boot[BOOT_ID_SIZE], said[300];
} recorder = {.root = -1, .instances = -1, .wait_ns = WAIT_MIN_NS};

static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int number)
{
	(void)number;
	stop_asked = 1;
}

static int64_t now_ns(void)
{
	return clock_now_ns(CLOCK_MONOTONIC);
}

/* If something else has the CPU between the two readings, this is too long; the shortest of some is not. */
static int64_t suspended_ns(void)
{
	int64_t least_ns = INT64_MAX;

	for (int i = 0; i < 3; i++) {
		int64_t monotonic_ns = now_ns(), slept_ns = clock_now_ns(CLOCK_BOOTTIME) - monotonic_ns;

		least_ns = slept_ns < least_ns ? slept_ns : least_ns;
	}
	return least_ns;
}

/* Readings that are further apart are tried again: the time between them would look like a suspend. */
static void clocks_json(struct json *j)
{
	int64_t monotonic_ns, boottime_ns, realtime_ns;
	int tries = CLOCK_TRIES;

	do {
		monotonic_ns = now_ns();
		boottime_ns = clock_now_ns(CLOCK_BOOTTIME);
		realtime_ns = clock_now_ns(CLOCK_REALTIME);
	} while (now_ns() - monotonic_ns > CLOCKS_TOGETHER_NS && --tries > 0);
	json_int(j, "monotonic_ns", monotonic_ns);
	json_int(j, "boottime_ns", boottime_ns);
	json_int(j, "realtime_ns", realtime_ns);
}

static int64_t cpu_ns(void)
{
	int64_t sum_ns = clock_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage); /* `watch` processes that have ended */
	sum_ns += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S;
	return sum_ns + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

/* Writes into the log that something happened. session: 0: none. */
static void event(const char *what, const char *detail, unsigned int session)
{
	const struct spool_counts *counts = &recorder.spool.counts;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct json j;

	if (!out)
		return;
	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "what", what);
	json_str(&j, "detail", detail);
	json_uint(&j, "session", session);
	json_str(&j, "boot_id", recorder.boot);
	clocks_json(&j);
	json_int(&j, "cpu_ns", cpu_ns());
	json_int(&j, "moments_removed", counts->moments_removed);
	json_int(&j, "sessions_removed", counts->sessions_removed);
	json_int(&j, "formats_removed", counts->formats_removed);
	json_int(&j, "moments_not_written", counts->moments_refused);
	json_int(&j, "lines_not_written", counts->lines_refused);
	json_close(&j, '}');
	if (!fclose(out))
		spool_event(&recorder.spool, text, len);
	free(text);
}

/* The same, unless it says what the last one said. */
static void event_once(const char *what, const char *detail)
{
	if (strcmp(detail, recorder.said))
		event(what, detail, 0);
	snprintf(recorder.said, sizeof(recorder.said), "%s", detail);
}

static void write_clocks(struct session *s)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct json j;

	s->windows_ns = 0;
	if (!out)
		return;
	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "clocks");
	clocks_json(&j);
	json_close(&j, '}');
	if (!fclose(out))
		spool_line(&recorder.spool, &s->file, text, len, true);
	free(text);
}

/* The first process of a unit's control group is its main process. */
static char unit_procs[512];

static int is_unit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	/* Below user.slice, any user can make a group of any name. */
	if (kind != FTW_D || strcmp(path + at->base, unit) || strstr(path, "/user.slice/"))
		return 0;
	snprintf(unit_procs, sizeof(unit_procs), "%s/cgroup.procs", path);
	return 1;
}

static int find_unit(pid_t *pid)
{
	FILE *file = NULL;
	int number, least = 0;

	if (!unit_procs[0] || !(file = fopen(unit_procs, "re"))) {
		unit_procs[0] = '\0';
		if (nftw("/sys/fs/cgroup", is_unit, 16, FTW_PHYS) == 1)
			file = fopen(unit_procs, "re");
	}
	if (!file)
		return 0;
	while (fscanf(file, "%d", &number) == 1) {
		if (!least || number < least)
			least = number;
	}
	fclose(file);
	*pid = least;
	return least > 0;
}

static bool has_name(int number)
{
	char path[64], text[512];
	struct bytes comm;
	ssize_t len;
	const char *base;
	bool same;

	snprintf(path, sizeof(path), "/proc/%d/comm", number);
	if (file_read(path, sizeof(text), &comm))
		return false;
	comm.data[strcspn(comm.data, "\n")] = '\0';
	same = !strncmp(comm.data, program, COMM_LEN) && strlen(comm.data) <= strlen(program);
	same = same && (strlen(comm.data) == COMM_LEN || !strcmp(comm.data, program));
	free(comm.data);
	if (same)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", number);
	len = readlink(path, text, sizeof(text) - 1);
	if (len <= 0)
		return false; /* it has ended, or is a kernel thread */
	text[len] = '\0';
	base = strrchr(text, '/');
	return base && !strcmp(base + 1, program);
}

/* Returns how many processes have the name in /proc/PID/comm, or an executable file of this name. */
static int find_named(pid_t *pid)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir))) {
		int number = atoi(entry->d_name);

		if (number > 0 && number != getpid() && has_name(number)) {
			*pid = number;
			count++;
		}
	}
	if (dir)
		closedir(dir);
	return count;
}

/* Returns whether exactly one program fits. */
static bool find_program(struct process *found)
{
	pid_t pid = 0;
	int count = unit ? find_unit(&pid) : find_named(&pid);
	char text[80];

	if (count > 1) {
		snprintf(text, sizeof(text), "%d programs have this name", count);
		event_once("several programs", text);
	}
	return count == 1 && process_read(pid, found) && found->state != 'Z';
}

/* Returns whether a session uses an instance, or the group of its events: in it, each - is a _. */
static bool in_use(const char *name)
{
	for (int i = 0; i < 4; i++) {
		const char *own = recorder.sessions[i / 2].instances[i % 2];
		size_t at = 0;

		while (own[at] && (own[at] == name[at] || (own[at] == '-' && name[at] == '_')))
			at++;
		if (at && own[at] == name[at])
			return true;
	}
	return false;
}

/* Removes an instance and its dynamic events, or the events of a group whose instance is gone. */
static void remove_instance(const char *name)
{
	if (!name[0])
		return;
	unlinkat(recorder.instances, name, AT_REMOVEDIR);
	tracepoints_remove(recorder.root, name);
}

/* Returns whether the recorder, or its session, that made an instance or the group of its events has ended.
 */
static bool is_left(const char *name, const char *prefix)
{
	struct process owner;
	char *end;
	long pid;

	if (strncmp(name, prefix, strlen(prefix)))
		return false;
	pid = strtol(name + strlen(prefix), &end, 10);
	if (pid <= 0 || pid > INT32_MAX)
		return false;
	if (kill((pid_t)pid, 0) && errno == ESRCH)
		return true;
	if (!*end || end[1] != 't' || !process_read((pid_t)pid, &owner))
		return false;
	/* another process may have the number now */
	return owner.start != strtoll(end + 2, NULL, 10) || (pid == getpid() && !in_use(name));
}

/* Removes what recorders left in a folder of tracefs because they were killed, or because somebody used it.
 */
static void remove_left_in(int folder, const char *prefix)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (is_left(entry->d_name, prefix))
			remove_instance(entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static void remove_leftovers(void)
{
	int events = openat(recorder.root, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	remove_left_in(recorder.instances, PREFIX);
	remove_left_in(events, GROUP_PREFIX);
	if (events >= 0)
		close(events);
}

/* Returns the KiB of each CPU's ring, which takes at most a part of the memory. */
static int64_t buffer_kb(void)
{
	int64_t kb = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 1024 / MEMORY_PART /
		     sysconf(_SC_NPROCESSORS_ONLN);

	if (kb < BUFFER_KB_MIN)
		return BUFFER_KB_MIN;
	return kb < BUFFER_KB ? kb : BUFFER_KB;
}

/* Starts a `watch`. Returns 0 or an errno. */
static int spawn(struct session *s)
{
	char *arguments[ARGUMENTS_MAX + 9], own[7][120];
	int to[2] = {-1, -1}, from[2] = {-1, -1}, count = 0, error = 0;
	posix_spawn_file_actions_t actions;

	snprintf(own[0], sizeof(own[0]), "--pid=%d", (int)s->program.pid);
	snprintf(own[1], sizeof(own[1]), "--trace-instance=%s", s->instances[0]);
	snprintf(own[2], sizeof(own[2]), "--explain-instance=%s", s->instances[1]);
	snprintf(own[3], sizeof(own[3]), "--window-ns=%lld", (long long)WINDOW_NS);
	snprintf(own[4], sizeof(own[4]), "--explain-buffer-kb=%lld", (long long)buffer_kb());
	snprintf(own[5], sizeof(own[5]), "--drain-ns=%lld",
		 (long long)(buffer_kb() * BUFFER_NS / BUFFER_KB_MIN));
	arguments[count++] = "rtgauge-engine";
	arguments[count++] = "watch";
	for (int i = 0; i < recorder.watch_count; i++)
		arguments[count++] = recorder.watch[i];
	for (int i = 0; i < 6; i++)
		arguments[count++] = own[i];
	arguments[count] = NULL;
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		error = errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
	if (!error)
		error = posix_spawn(&s->pid, "/proc/self/exe", &actions, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (to[0] >= 0)
		close(to[0]);
	if (from[1] >= 0)
		close(from[1]);
	s->in = to[1];
	s->out = from[0];
	return error;
}

static void free_session(struct session *s)
{
	for (int i = 0; i < SERIES_MAX; i++)
		free(s->task[i]);
	free(s->line);
	for (int i = 0; i < 2; i++)
		remove_instance(s->instances[i]);
	if (s->in >= 0)
		close(s->in);
	if (s->out >= 0)
		close(s->out);
	if (s->file.fd >= 0)
		spool_end(&recorder.spool, &s->file);
	*s = (struct session){0};
}

static void failed(const char *why)
{
	event_once("engine failed", why);
	recorder.again_ns = now_ns() + recorder.wait_ns;
	recorder.wait_ns = 2 * recorder.wait_ns < WAIT_MAX_NS ? 2 * recorder.wait_ns : WAIT_MAX_NS;
}

static void has_begun(struct session *s)
{
	recorder.said[0] = '\0'; /* the same failure is news again */
	write_clocks(s);
	event("session begins", "", s->file.number);
}

/* Starts a session. Returns NULL if that fails. */
static struct session *begin(const struct process *watched)
{
	struct session *s = recorder.sessions[0].pid ? &recorder.sessions[1] : &recorder.sessions[0];
	static const char *const parts[] = {"", "-explain"};
	int error = 0;

	remove_leftovers(); /* also of this recorder: somebody may have used an instance when it should go */
	age_write(&recorder.age, &recorder.spool, recorder.boot);
	*s = (struct session){.program = *watched, .in = -1, .out = -1, .file.fd = -1};
	s->begun_ns = now_ns();
	s->suspended_ns = suspended_ns();
	recorder.number++;
	for (int i = 0; i < 2 && !error; i++) {
		snprintf(s->instances[i], sizeof(s->instances[i]), PREFIX "%d-t%lld-%u%s", (int)getpid(),
			 (long long)recorder.start, recorder.number, parts[i]);
		error = mkdirat(recorder.instances, s->instances[i], 0700) ? errno : 0;
	}
	if (!error)
		error = spool_begin(&recorder.spool, &s->file);
	if (!error)
		error = spawn(s);
	if (error) {
		s->pid = 0;
		failed(errname(error));
		free_session(s);
		return NULL;
	}
	has_begun(s);
	return s;
}

static void say(const struct session *s, const char *word)
{
	if (write(s->in, word, strlen(word)) < 0 && errno != EPIPE)
		failed(errname(errno));
}

static void stop(struct session *s)
{
	if (s->stopping)
		return;
	s->stopping = true;
	s->stopped_ns = now_ns();
	say(s, "stop\n");
}

/* Ends a silent session that does not go on, as one that waits for a file server. */
static void kill_if_late(struct session *s, int64_t at_ns)
{
	if (s->killed)
		return;
	if (s->stopping && at_ns - s->stopped_ns >= END_NS)
		s->killed = "the engine did not stop within 10 s and was killed; its last events are missing";
	else if (!s->armed && at_ns - s->begun_ns >= ARM_NS)
		s->killed = "the engine did not begin within 60 s and was killed; the recorder tries again";
	if (s->killed)
		kill(s->pid, SIGKILL);
}

/* Returns the whole number behind a key within the first bytes of a line; -1: there is none. */
static int64_t number_of(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* Copies the JSON text behind a key, with its quotes; malloc'ed. */
static char *text_of(const char *line, const char *key)
{
	const char *at = strstr(line, key), *end;

	if (!at)
		return NULL;
	at += strlen(key);
	for (end = at; *end && *end != '"'; end++)
		end += *end == '\\' && end[1];
	return strndup(at, (size_t)(end - at));
}

static unsigned int hash(unsigned int sum, const char *text)
{
	for (; text && *text; text++)
		sum = (sum ^ (unsigned char)*text) * 16777619U; /* FNV-1a */
	return sum;
}

static void take_moment(struct session *s, char *line, size_t len)
{
	int64_t series = number_of(line, "\"series\":"), latency_ns = number_of(line, "\"latency_ns\":");
	char *kind = text_of(line, "\"kind\":\""), hour[24], head[400] = "";
	FILE *out = fmemopen(head, sizeof(head), "w");
	struct json j;

	snprintf(hour, sizeof(hour), "%lld", (long long)(clock_now_ns(CLOCK_REALTIME) / NS_PER_S / HOUR_S));
	if (out && series >= 0 && series < SERIES_MAX) {
		unsigned int group = hash(hash(hash(2166136261U, s->task[series]), kind), hour);

		json_start(&j, out);
		json_open(&j, NULL, '{');
		json_str(&j, "type", "kept");
		json_uint(&j, "session", s->file.number);
		json_uint(&j, "formats", s->formats);
		clocks_json(&j);
		json_close(&j, '}');
		fclose(out);
		s->moments++;
		spool_moment(&recorder.spool,
			     (struct spool_moment){
				     .session = s->file.number, .group = group, .latency_ns = latency_ns},
			     head, line, len);
	} else if (out) {
		fclose(out);
	}
	free(kind);
}

static void take_formats(struct session *s, const char *line, size_t len)
{
	char text[64];

	s->formats = spool_formats(&recorder.spool, line, len);
	snprintf(text, sizeof(text), "{\"type\":\"formats\",\"number\":%u}", s->formats);
	spool_line(&recorder.spool, &s->file, text, strlen(text), false);
}

static bool begins(const char *line, const char *type)
{
	static const char before[] = "{\"type\":\"";

	return !strncmp(line, before, sizeof(before) - 1) &&
	       !strncmp(line + sizeof(before) - 1, type, strlen(type)) &&
	       line[sizeof(before) - 1 + strlen(type)] == '"';
}

static void take_started(struct session *s, const char *line, int64_t warm_up_ns)
{
	s->from_ns = number_of(line, "\"start_ns\":") + warm_up_ns;
}

/* Takes one line of a `watch`. */
static void take(struct session *s, char *line, size_t len)
{
	static int64_t warm_up_ns[2];
	int64_t *warm_up = &warm_up_ns[s - recorder.sessions];
	bool keeps = true;

	if (begins(line, "moment")) {
		take_moment(s, line, len);
		return;
	}
	if (begins(line, "trace_formats")) {
		take_formats(s, line, len);
		return;
	}
	if (begins(line, "hello")) {
		*warm_up = number_of(line, "\"warm_up_ns\":");
	} else if (begins(line, "series")) {
		int64_t series = number_of(line, "\"series\":");

		if (series >= 0 && series < SERIES_MAX) {
			free(s->task[series]);
			s->task[series] = text_of(line, "\"task\":\"");
		}
	} else if (begins(line, "armed")) {
		s->armed = true;
		say(s, "go\n");
	} else if (begins(line, "started")) {
		keeps = !s->from_ns;
		if (keeps)
			take_started(s, line, *warm_up);
	} else if (begins(line, "end")) {
		s->ended_in_order = true;
		s->program_ended = strstr(line, "\"program-ended\"");
	} else if (begins(line, "error")) {
		char *why = text_of(line, "\"message\":\"");

		failed(why ? why : "");
		free(why);
	} else if (begins(line, "window")) {
		keeps = strstr(line, "\"phase\":\"measure\"") && !strstr(line, "\"count\":0,\"missed\":0,");
		if (keeps && !s->windows_ns)
			s->windows_ns = now_ns();
	} else if (begins(line, "outlier") || begins(line, "stretch") || begins(line, "summary") ||
		   strstr(line, "\"name\":\"change\"")) {
		keeps = false; /* the host makes them of the windows and the moments */
	}
	if (keeps)
		spool_line(&recorder.spool, &s->file, line, len, false);
}

static void take_end(struct session *s)
{
	bool is_now = s == recorder.now, lived;
	unsigned int number = s->file.number;
	bool program_ended = s->program_ended, in_order = s->ended_in_order;
	const char *killed = s->killed;

	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	lived = in_order && now_ns() - s->begun_ns >= LIVED_NS;
	write_clocks(s);
	free_session(s);
	event("session ends", program_ended ? "program-ended" : in_order ? "" : "failed", number);
	if (is_now)
		recorder.now = recorder.next;
	recorder.next = NULL;
	if (lived)
		recorder.wait_ns = WAIT_MIN_NS;
	else if (killed)
		failed(killed);
	else if (!stop_asked)
		failed(program_ended ? "the program ended after a few seconds" : "it ended early");
}

/* Reads what a `watch` has written. */
static void drain(struct session *s)
{
	ssize_t got;
	char *end;

	if (s->size - s->len < PIECE) {
		size_t size = s->size ? 2 * s->size : (size_t)4 * PIECE;
		char *line = size <= LINE_MAX_LEN ? realloc(s->line, size) : NULL;

		if (!line) {
			failed("a line is too long, or there is not enough memory");
			kill(s->pid, SIGKILL);
			take_end(s);
			return;
		}
		s->line = line;
		s->size = size;
	}
	got = read(s->out, s->line + s->len, s->size - s->len - 1);
	if (got < 0 && errno == EINTR)
		return;
	if (got <= 0) {
		take_end(s);
		return;
	}
	s->len += (size_t)got;
	s->line[s->len] = '\0';
	while ((end = memchr(s->line, '\n', s->len))) {
		size_t len = (size_t)(end - s->line);

		*end = '\0';
		take(s, s->line, len);
		s->len -= len + 1;
		memmove(s->line, end + 1, s->len + 1);
	}
}

/* Starts the next session if this one has run for long, and ends this one just before the next measures. */
static void follow_on(int64_t at_ns)
{
	struct session *s = recorder.now, *next = recorder.next;
	int64_t age_ns = at_ns - s->begun_ns;
	bool is_old = age_ns >= SESSION_NS || (s->moments >= SESSION_MOMENTS && age_ns >= SESSION_LEAST_NS) ||
		      s->file.bytes >= SPOOL_FILE_MAX / 2 || suspended_ns() - s->suspended_ns >= SUSPENDED_NS;

	if (!next && is_old && s->from_ns && at_ns >= s->from_ns && at_ns >= recorder.again_ns) {
		recorder.next = begin(&s->program);
	} else if (next && next->from_ns && at_ns >= next->from_ns - BEFORE_NS && !s->stopping) {
		stop(s);
	}
}

/* Returns how long to wait for lines. */
static int pause_ms(int64_t at_ns)
{
	int64_t pause_ns = LOOK_NS;

	if (recorder.next && recorder.next->from_ns && recorder.next->from_ns - BEFORE_NS - at_ns < pause_ns)
		pause_ns = recorder.next->from_ns - BEFORE_NS - at_ns;
	if (recorder.now && recorder.now->stopping)
		pause_ns = LOOK_NS;
	return pause_ns > 0 ? (int)(pause_ns / 1000000) + 1 : 0;
}

static void wait_for_lines(int64_t at_ns)
{
	struct session *open[2];
	struct pollfd fds[2];
	nfds_t count = 0;

	for (int i = 0; i < 2; i++) {
		if (!recorder.sessions[i].pid)
			continue;
		open[count] = &recorder.sessions[i];
		fds[count++] = (struct pollfd){.fd = recorder.sessions[i].out, .events = POLLIN};
	}
	if (poll(fds, count, pause_ms(at_ns)) < 0)
		return;
	at_ns = now_ns();
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents)
			drain(open[i]);
		else
			kill_if_late(open[i], at_ns);
	}
}

/* Ends all sessions, except one that even SIGKILL does not end. */
static void end_sessions(void)
{
	int64_t at_ns = now_ns(), until_ns = at_ns + 2 * END_NS;

	stop_asked = 1;
	for (int i = 0; i < 2; i++) {
		if (recorder.sessions[i].pid)
			stop(&recorder.sessions[i]);
	}
	for (; (recorder.sessions[0].pid || recorder.sessions[1].pid) && at_ns < until_ns; at_ns = now_ns())
		wait_for_lines(at_ns);
	if (recorder.sessions[0].pid || recorder.sessions[1].pid)
		event_once("engine failed",
			   "the engine cannot be killed: it waits in the kernel; restart the machine");
}

static void record_on(void)
{
	struct process found;

	while (!stop_asked && (!for_ns || age_now(&recorder.age) < for_ns)) {
		int64_t at_ns = now_ns();

		if (!recorder.now && at_ns >= recorder.again_ns) {
			recorder.again_ns = at_ns + LOOK_NS;
			if (find_program(&found))
				recorder.now = begin(&found);
		}
		for (int i = 0; i < 2; i++) {
			struct session *s = &recorder.sessions[i];

			if (s->windows_ns && at_ns - s->windows_ns >= LOOK_NS)
				write_clocks(s); /* the windows of all series have come */
		}
		if (recorder.now)
			follow_on(at_ns);
		wait_for_lines(at_ns);
	}
	end_sessions();
}

static int open_instances(void)
{
	recorder.root = tracefs_open();
	if (recorder.root < 0)
		return errno;
	recorder.instances = openat(recorder.root, "instances", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return recorder.instances < 0 ? errno : 0;
}

static int verb_record(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = ask_to_stop};
	struct process self;
	bool dashes;
	int rest, error, status;

	status = options_parse_operands(table, " -- OPTIONS of watch", argc, argv, &rest, &dashes);
	if (status)
		return status < 0 ? STATUS_OK : status;
	if (!folder || !program == !unit)
		return usage_error("give --folder, and either --program or --unit");
	if (argc - rest > ARGUMENTS_MAX)
		return usage_error("give at most %d options of watch", ARGUMENTS_MAX);
	recorder.watch = argv + rest;
	recorder.watch_count = argc - rest;
	error = open_instances();
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal",
				  "cannot open tracefs: %s; run rtgauge as root", errname(error));
	error = spool_open(&recorder.spool, folder, keep_bytes);
	if (!error)
		error = spool_put(&recorder.spool, SETTINGS, settings);
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot record into %.200s: %s", folder,
				  error == EWOULDBLOCK ? "another recorder uses it" : errname(error));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	boot_id_read(recorder.boot);
	if (process_read(getpid(), &self))
		recorder.start = self.start;
	remove_leftovers();
	age_read(&recorder.age, &recorder.spool, recorder.boot);
	if (for_ns && age_now(&recorder.age) >= for_ns) {
		fprintf(stderr, "nothing is recorded, because the time of --for-ns is over in %s\n", folder);
		spool_close(&recorder.spool);
		return STATUS_OK;
	}
	age_write(&recorder.age, &recorder.spool, recorder.boot);
	event("recorder started", "", 0);
	record_on();
	remove_leftovers();
	age_write(&recorder.age, &recorder.spool, recorder.boot);
	event("recorder stopped", "", 0);
	spool_close(&recorder.spool);
	return STATUS_OK;
}

AGENT_VERB("record", verb_record, "watch a program for weeks, and keep its largest latencies in a folder")
