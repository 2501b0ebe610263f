// SPDX-License-Identifier: MIT
#include "agent/machine_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/process.h"
#include "agent/text.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/options.h"

#define RUN_DIR "/run/rtgauge"
#define TIMES "%020" PRId64 " %020" PRId64 "\n"
#define TIMES_LEN 42
#define SILENT_NS (8 * NS_PER_S) /* a host sends `renew` every 2.5 s */

static bool is_ours(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) && !(st->st_mode & S_IWOTH);
}

/* Opens the folder, and makes it with this mode if necessary. Returns 0 or an errno. */
static int open_dir(const char *path, mode_t mode, int *fd)
{
	struct stat st;
	bool made = !mkdir(path, mode);
	int error = made ? 0 : errno;

	*fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return error && error != EEXIST ? error : errno;
	if (made)
		chmod(path, mode); /* whatever the umask is */
	error = fstat(*fd, &st) ? errno : is_ours(&st) ? 0 : EPERM;
	if (error)
		close(*fd);
	return error;
}

/* Every user may lock the file that root makes: flock(2) needs no right to write. */
static int make_file(int dir)
{
	int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && !geteuid())
		fchmod(fd, 0644); /* whatever the umask is */
	return fd;
}

static int open_file(int dir, struct machine_lock *lock)
{
	const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat st;
	int error = 0;

	lock->fd = make_file(dir);
	if (lock->fd < 0 && errno == EEXIST)
		lock->fd = openat(dir, "lock", O_RDWR | flags);
	if (lock->fd < 0)
		error = errno;
	lock->text_fd = lock->fd;
	if (error == EROFS || error == EACCES) {
		lock->fd = openat(dir, "lock", O_RDONLY | flags);
		if (lock->fd < 0)
			return error;
	} else if (error) {
		return error;
	}
	error = 0;
	if (fstat(lock->fd, &st))
		error = errno;
	else if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || !is_ours(&st))
		error = EPERM;
	if (error) {
		close(lock->fd);
		lock->fd = lock->text_fd = -1;
	}
	return error;
}

static int open_in(struct machine_lock *lock, const char *path, mode_t mode)
{
	int dir, error = open_dir(path, mode, &dir);
	struct stat st;

	snprintf(lock->path, sizeof(lock->path), "%s/lock", path);
	if (error)
		return error;
	error = open_file(dir, lock);
	if (error == EACCES && geteuid() && !fstatat(dir, "lock", &st, AT_SYMLINK_NOFOLLOW)) {
		lock->above_dev = st.st_dev;
		lock->above_ino = st.st_ino;
	}
	close(dir);
	return error;
}

/* The folder of a user's own file. */
static void own_dir(char path[64], uid_t uid)
{
	snprintf(path, 64, "/run/user/%u", uid);
	if (uid && !access(path, W_OK))
		strcat(path, "/rtgauge");
	else
		snprintf(path, 64, "/tmp/rtgauge-%u", uid);
}

int machine_lock_open(struct machine_lock *lock, const char *dir)
{
	struct machine_lock own = {.fd = -1, .text_fd = -1};
	char path[64];
	int error;

	*lock = own;
	if (dir)
		return open_in(lock, dir, 0755);
	if (!geteuid())
		mkdir("/run", 0755);
	error = open_in(lock, RUN_DIR, 0755);
	own_dir(path, geteuid());
	if (!error) {
		/* The user's own file only describes the run, so a run can do without it. */
		if (lock->text_fd < 0 && geteuid() && !open_in(&own, path, 0700))
			lock->text_fd = own.fd;
		return 0;
	}
	/* all users share root's lock, so replace only files that cannot be there legitimately */
	if (!geteuid() && error != EROFS && error != ENOENT && error != ENOTDIR)
		return error;
	return open_in(lock, path, 0700);
}

/* Returns whether a line of /proc/locks or of /proc/PID/fdinfo/FD describes a lock of this file. */
static bool is_lock_of(const char *line, dev_t dev, ino_t ino)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), " %02x:%02x:%ju ", major(dev), minor(dev), (uintmax_t)ino);
	return strstr(line, " FLOCK ") && !strstr(line, "->") && strstr(line, wanted);
}

static bool file_has_lock(const char *path, dev_t dev, ino_t ino)
{
	char line[256];
	FILE *file = fopen(path, "re");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = is_lock_of(line, dev, ino);
	if (file)
		fclose(file);
	return found;
}

int machine_lock_try(struct machine_lock *lock)
{
	if (lock->above_ino && file_has_lock("/proc/locks", lock->above_dev, lock->above_ino))
		return EWOULDBLOCK;
	if (!lock->held && flock(lock->fd, LOCK_EX | LOCK_NB))
		return errno;
	lock->held = true;
	return 0;
}

pid_t machine_lock_wait(const struct machine_lock *lock)
{
	pid_t parent = getpid(), child = fork();
	sigset_t none;

	if (child)
		return child;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	while (flock(lock->fd, LOCK_EX)) {
		if (errno != EINTR)
			_exit(1);
	}
	_exit(0); /* the parent shares the open file, and so the lock */
}

void machine_lock_say(const struct machine_lock *lock, const struct holder *self)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = lock->text_fd >= 0 ? open_memstream(&text, &len) : NULL;
	struct json j;

	if (!out)
		return;
	fprintf(out, TIMES, self->heard_ns, self->ends_ns);
	json_start(&j, out);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "lock");
	json_str(&j, "run", self->run);
	json_str(&j, "label", self->label);
	json_int(&j, "pid", self->pid);
	json_int(&j, "start", self->start);
	json_int(&j, "pid_namespace", self->pid_namespace);
	json_int(&j, "lease_ns", self->lease_ns);
	if (self->host_pid)
		json_int(&j, "host_pid", self->host_pid);
	json_close(&j, '}');
	json_line(&j);
	fclose(out);
	/* Erase an earlier holder's text first, so that a full disk leaves no wrong text behind. */
	if (!ftruncate(lock->text_fd, 0) && pwrite(lock->text_fd, text, len, 0) != (ssize_t)len)
		(void)!ftruncate(lock->text_fd, 0);
	free(text);
}

void machine_lock_say_times(const struct machine_lock *lock, const struct holder *self)
{
	char text[TIMES_LEN + 1];
	struct stat st;

	if (lock->text_fd < 0 || fstat(lock->text_fd, &st) || st.st_size <= TIMES_LEN)
		return;
	snprintf(text, sizeof(text), TIMES, self->heard_ns, self->ends_ns);
	(void)!pwrite(lock->text_fd, text, TIMES_LEN, 0);
}

/* Reads a number of 20 digits. */
static int64_t scan_time(struct scan *scan)
{
	int64_t number = 0;

	for (int i = 0; i < 20 && !scan->wrong; i++, scan->at++) {
		if (*scan->at < '0' || *scan->at > '9' || number > INT64_MAX / 10 - 1)
			scan->wrong = true;
		else
			number = number * 10 + (*scan->at - '0');
		if (scan->wrong)
			break;
	}
	return number;
}

void machine_lock_parse(char *text, struct holder *holder)
{
	struct scan scan = {.at = text};
	const char *run, *label;

	*holder = (struct holder){0};
	holder->heard_ns = scan_time(&scan);
	scan_literal(&scan, " ");
	holder->ends_ns = scan_time(&scan);
	scan_literal(&scan, "\n{\"type\":\"lock\",\"run\":");
	run = scan_text(&scan);
	scan_literal(&scan, ",\"label\":");
	label = scan_text(&scan);
	scan_literal(&scan, ",\"pid\":");
	holder->pid = scan_int(&scan, 1, INT32_MAX);
	scan_literal(&scan, ",\"start\":");
	holder->start = scan_int(&scan, 0, INT64_MAX);
	scan_literal(&scan, ",\"pid_namespace\":");
	holder->pid_namespace = scan_int(&scan, 0, INT64_MAX);
	scan_literal(&scan, ",\"lease_ns\":");
	holder->lease_ns = scan_int(&scan, 1, INT64_MAX / 4);
	if (!scan.wrong && *scan.at == ',') {
		scan_literal(&scan, ",\"host_pid\":");
		holder->host_pid = scan_int(&scan, 1, INT32_MAX);
	}
	scan_literal(&scan, "}\n");
	if (scan.wrong || !text_is_id(run) || !text_is_plain(label, sizeof(holder->label) - 1)) {
		*holder = (struct holder){0};
		return;
	}
	snprintf(holder->run, sizeof(holder->run), "%s", run);
	snprintf(holder->label, sizeof(holder->label), "%s", label);
}

/* Returns the user of a process, or -1. */
static int64_t uid_of(int64_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%" PRId64, pid);
	return stat(path, &st) ? -1 : (int64_t)st.st_uid;
}

/* Reads a description. One of a guard that was killed stays if the next holder may not write the file. */
static bool read_text(int fd, struct holder *holder)
{
	char text[2048];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	machine_lock_parse(text, holder);
	if (*holder->run && holder->pid_namespace == machine_lock_pid_namespace() &&
	    !process_lives((pid_t)holder->pid, holder->start))
		*holder = (struct holder){.uid = -1};
	return *holder->run;
}

/* Reads what another user's guard wrote into this user's own file, which may be anything. */
static bool read_own_text(uid_t uid, struct holder *holder)
{
	char dir[64], path[80];
	struct stat st;
	int fd;

	own_dir(dir, uid);
	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != uid || !read_text(fd, holder))
		*holder = (struct holder){.uid = -1};
	close(fd);
	return *holder->run;
}

/* Looks for the lock among a process's descriptors, and remembers where it is. */
static bool process_has_lock(struct machine_lock *lock, const char *pid, const struct stat *file)
{
	char path[40];
	DIR *infos;
	const struct dirent *info;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%.10s/fdinfo", pid);
	infos = opendir(path);
	while (infos && !found && (info = readdir(infos))) {
		if (info->d_name[0] == '.')
			continue;
		snprintf(lock->seen, sizeof(lock->seen), "%s/%.10s", path, info->d_name);
		found = file_has_lock(lock->seen, file->st_dev, file->st_ino);
	}
	if (infos)
		closedir(infos);
	return found;
}

/* Returns the process that holds the lock, or 0. */
static pid_t find_process(struct machine_lock *lock)
{
	DIR *processes;
	const struct dirent *process;
	struct stat file;
	int64_t pid;
	bool found;

	if (fstat(lock->fd, &file))
		return 0;
	found = *lock->seen && file_has_lock(lock->seen, file.st_dev, file.st_ino);
	processes = found ? NULL : opendir("/proc");
	while (processes && !found && (process = readdir(processes)))
		found = options_int(process->d_name, &pid) && process_has_lock(lock, process->d_name, &file);
	if (processes)
		closedir(processes);
	if (!found)
		*lock->seen = '\0';
	return found ? (pid_t)strtol(lock->seen + strlen("/proc/"), NULL, 10) : 0;
}

void machine_lock_holder(struct machine_lock *lock, struct holder *holder)
{
	pid_t pid;

	if (!read_text(lock->fd, holder) &&
	    (lock->text_fd == lock->fd || !read_text(lock->text_fd, holder)) && (pid = find_process(lock))) {
		int64_t uid = uid_of(pid);

		/* What a user writes may name another process, so the kernel's word comes first. */
		if (uid <= 0 || !read_own_text((uid_t)uid, holder) || holder->pid != pid)
			*holder = (struct holder){.pid = pid, .pid_namespace = machine_lock_pid_namespace()};
	}
	holder->uid = holder->pid && holder->pid_namespace == machine_lock_pid_namespace()
			      ? uid_of(holder->pid)
			      : -1;
	if (holder->uid >= 0 && holder->host_pid && uid_of(holder->host_pid) != holder->uid)
		holder->host_pid = 0;
}

bool machine_lock_is_silent(const struct holder *holder, int64_t now_ns)
{
	return holder->heard_ns && now_ns - holder->heard_ns > SILENT_NS;
}

int64_t machine_lock_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (int64_t)st.st_ino;
}

void machine_lock_close(struct machine_lock *lock)
{
	if (lock->held && lock->text_fd >= 0)
		(void)!ftruncate(lock->text_fd, 0);
	if (lock->text_fd >= 0 && lock->text_fd != lock->fd)
		close(lock->text_fd);
	if (lock->fd >= 0)
		close(lock->fd);
	lock->fd = lock->text_fd = -1;
	lock->held = false;
}
