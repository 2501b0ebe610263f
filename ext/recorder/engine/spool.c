// SPDX-License-Identifier: MIT
#include "ext/recorder/engine/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/file.h"
#include "ext/recorder/engine/fold.h"

#define BLOCK INT64_C(4096)
#define NAME_SIZE 96
#define LOG "log.ndjson"
#define OLD_LOG "log.old.ndjson"
#define LOG_BYTES_MAX (INT64_C(512) << 10)
#define FORMATS_MAX 8
#define FORMATS_BYTES_MAX (4U << 20)
#define SESSIONS_SHARE 2 /* sessions may take one part in this many of the room */
#define HEAD_BYTES_MAX (256U << 10)
#define FOLD_BYTES_MAX (16U << 20)
#define HEAD_END "{\"type\":\"started\""

static int64_t on_disk(int64_t bytes)
{
	return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static int write_all(int fd, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t written = write(fd, text + at, len - at);

		if (written > 0)
			at += (size_t)written;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

/* Writes the lines, each with its end, so that a kill or a power cut leaves either all of them or none. */
static int write_whole(int folder, const char *name, const char *const lines[], const size_t lens[],
		       unsigned int count)
{
	int fd = openat(folder, ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error = fd < 0 ? errno : 0;

	for (unsigned int i = 0; i < count && !error; i++) {
		error = write_all(fd, lines[i], lens[i]);
		if (!error)
			error = write_all(fd, "\n", 1);
	}
	if (!error && (fsync(fd) || renameat(folder, ".new", folder, name) || fsync(folder)))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error)
		unlinkat(folder, ".new", 0);
	return error;
}

static int open_part(int folder, const char *name)
{
	if (mkdirat(folder, name, 0700) && errno != EEXIST)
		return -1;
	return openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Calls take with the name and the size of each file; what a kill left is removed. Returns 0 or an errno. */
static int walk(struct spool *spool, int folder, int (*take)(struct spool *, const char *, int64_t))
{
	int fd = dup(folder), error = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!dir) {
		error = errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	rewinddir(dir);
	while (!error && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".new"))
			unlinkat(folder, ".new", 0);
		else if (entry->d_name[0] != '.' && !fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			error = take(spool, entry->d_name, st.st_size);
	}
	closedir(dir);
	return error;
}

/* Makes room for one more element. Doubles the memory whenever it is a power of two. */
static void *grown(void *all, size_t count, size_t size)
{
	return count & (count - 1) ? all : realloc(all, (count ? 2 * count : 1) * size);
}

/* Returns the place of the first group from this one on. */
static size_t group_at(const struct spool *spool, unsigned int group)
{
	size_t low = 0, high = spool->group_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spool->groups[middle].group < group)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool join_group(struct spool *spool, const struct spool_moment *moment)
{
	size_t at = group_at(spool, moment->group);

	if (at == spool->group_count || spool->groups[at].group != moment->group) {
		struct spool_group *all = grown(spool->groups, spool->group_count, sizeof(*all));

		if (!all)
			return false;
		spool->groups = all;
		memmove(&all[at + 1], &all[at], (spool->group_count - at) * sizeof(*all));
		all[at] = (struct spool_group){.group = moment->group};
		spool->group_count++;
	}
	spool->groups[at].count++;
	spool->groups[at].bytes += moment->bytes;
	return true;
}

static void leave_group(struct spool *spool, const struct spool_moment *moment)
{
	size_t at = group_at(spool, moment->group);
	struct spool_group *group = &spool->groups[at];

	group->bytes -= moment->bytes;
	if (--group->count)
		return;
	memmove(group, group + 1, (spool->group_count - at - 1) * sizeof(*group));
	spool->group_count--;
}

static bool append_moment(struct spool *spool, const struct spool_moment *moment)
{
	struct spool_moment *all = grown(spool->moments, spool->moment_count, sizeof(*all));

	if (!all)
		return false;
	spool->moments = all;
	all[spool->moment_count++] = *moment;
	spool->moment_bytes += moment->bytes;
	if (spool->next_moment <= moment->number)
		spool->next_moment = moment->number + 1;
	return true;
}

static bool add_moment(struct spool *spool, const struct spool_moment *moment)
{
	if (!join_group(spool, moment))
		return false;
	if (append_moment(spool, moment))
		return true;
	leave_group(spool, moment);
	return false;
}

static void moment_name(const struct spool_moment *moment, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%08u.%u.%u.%lld", moment->number, moment->session, moment->group,
		 (long long)moment->latency_ns);
}

static int find_moment(struct spool *spool, const char *name, int64_t bytes)
{
	struct spool_moment moment = {.bytes = on_disk(bytes)};
	long long latency_ns;

	if (sscanf(name, "%u.%u.%u.%lld", &moment.number, &moment.session, &moment.group, &latency_ns) != 4)
		return 0;
	moment.latency_ns = latency_ns;
	return append_moment(spool, &moment) ? 0 : ENOMEM; /* group_moments puts it into its group */
}

static bool add_session(struct spool *spool, unsigned int number, int64_t bytes)
{
	struct spool_session *all = grown(spool->sessions, spool->session_count, sizeof(*all));

	if (!all)
		return false;
	spool->sessions = all;
	all[spool->session_count++] = (struct spool_session){.number = number, .bytes = on_disk(bytes)};
	spool->session_bytes += on_disk(bytes);
	if (spool->next_session <= number)
		spool->next_session = number + 1;
	return true;
}

static int find_session(struct spool *spool, const char *name, int64_t bytes)
{
	unsigned int number;

	if (sscanf(name, "%u.", &number) != 1)
		return 0;
	return add_session(spool, number, bytes) ? 0 : ENOMEM;
}

static int find_formats(struct spool *spool, const char *name, int64_t bytes)
{
	unsigned int number;

	if (sscanf(name, "%u.", &number) != 1)
		return 0;
	if (spool->formats < number)
		spool->formats = number;
	spool->formats_bytes += on_disk(bytes);
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct spool_session *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int moment_by_group(const void *a, const void *b)
{
	const struct spool_moment *x = a, *y = b;

	return (x->group > y->group) - (x->group < y->group);
}

static int moment_by_number(const void *a, const void *b)
{
	const struct spool_moment *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Puts the moments that the folder had into their groups. Returns 0 or an errno. */
static int group_moments(struct spool *spool)
{
	if (!spool->moment_count)
		return 0;
	qsort(spool->moments, spool->moment_count, sizeof(*spool->moments), moment_by_group);
	for (size_t i = 0; i < spool->moment_count; i++) {
		if (!join_group(spool, &spool->moments[i]))
			return ENOMEM;
	}
	qsort(spool->moments, spool->moment_count, sizeof(*spool->moments), moment_by_number);
	return 0;
}

static int open_log(struct spool *spool)
{
	struct stat st;

	spool->log = openat(spool->folder, LOG, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (spool->log < 0 || fstat(spool->log, &st))
		return errno;
	spool->log_bytes = st.st_size;
	spool->old_log_bytes = fstatat(spool->folder, OLD_LOG, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_size;
	return 0;
}

static void session_name(unsigned int number, char name[NAME_SIZE])
{
	snprintf(name, NAME_SIZE, "%08u.ndjson", number);
}

/* Folds the windows of a session that is over. If that fails, as on a full disk, it stays as it is. */
static void fold(struct spool *spool, struct spool_session *session)
{
	struct bytes bytes = {0};
	char name[NAME_SIZE], *folded = NULL;
	const char *text;
	size_t len;
	int fd;

	session_name(session->number, name);
	fd = openat(spool->sessions_folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (!file_read_fd(fd, FOLD_BYTES_MAX, &bytes)) {
		len = bytes.len;
		folded = bytes.more ? NULL : fold_session(bytes.data, &len);
		free(bytes.data);
	}
	close(fd);
	text = folded;
	if (!folded)
		return;
	len--; /* write_whole writes the last end */
	if (!write_whole(spool->sessions_folder, name, &text, &len, 1)) {
		spool->session_bytes += on_disk((int64_t)len + 1) - session->bytes;
		session->bytes = on_disk((int64_t)len + 1);
	}
	free(folded);
}

int spool_open(struct spool *spool, const char *path, int64_t keep_bytes)
{
	struct stat st;
	int error;

	*spool = (struct spool){.keep_bytes = keep_bytes,
				.sessions_folder = -1,
				.moments_folder = -1,
				.formats_folder = -1,
				.log = -1,
				.next_moment = 1,
				.next_session = 1};
	if (mkdir(path, 0700) && errno != EEXIST)
		return errno;
	spool->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (spool->folder < 0 || fstat(spool->folder, &st))
		return errno;
	if (st.st_uid != geteuid() || st.st_mode & 022)
		return EPERM;
	if (fchmod(spool->folder, 0700) || flock(spool->folder, LOCK_EX | LOCK_NB))
		return errno;
	spool->sessions_folder = open_part(spool->folder, "sessions");
	spool->moments_folder = open_part(spool->folder, "moments");
	spool->formats_folder = open_part(spool->folder, "formats");
	if (spool->sessions_folder < 0 || spool->moments_folder < 0 || spool->formats_folder < 0)
		return errno;
	error = open_log(spool);
	if (!error)
		error = walk(spool, spool->sessions_folder, find_session);
	if (!error)
		error = walk(spool, spool->moments_folder, find_moment);
	if (!error)
		error = group_moments(spool);
	if (!error)
		error = walk(spool, spool->formats_folder, find_formats);
	if (spool->session_count)
		qsort(spool->sessions, spool->session_count, sizeof(*spool->sessions), by_number);
	/* a kill left at most two that were being written */
	for (size_t i = spool->session_count; !error && i && i + 2 > spool->session_count; i--)
		fold(spool, &spool->sessions[i - 1]);
	return error;
}

void spool_close(struct spool *spool)
{
	const int all[] = {spool->log, spool->formats_folder, spool->moments_folder, spool->sessions_folder,
			   spool->folder};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] >= 0)
			close(all[i]);
	}
	free(spool->moments);
	free(spool->groups);
	free(spool->sessions);
}

int spool_put(struct spool *spool, const char *name, const char *text)
{
	size_t len = strlen(text);

	return write_whole(spool->folder, name, &text, &len, 1);
}

int64_t spool_bytes(const struct spool *spool)
{
	return 7 * BLOCK + on_disk(spool->log_bytes) + on_disk(spool->old_log_bytes) + spool->formats_bytes +
	       spool->session_bytes + spool->moment_bytes;
}

static bool has_moments(const struct spool *spool, unsigned int session)
{
	for (size_t i = 0; i < spool->moment_count; i++) {
		if (spool->moments[i].session == session)
			return true;
	}
	return false;
}

/* Returns the length of a session's lines up to the one after which it measures: its moments need them. */
static off_t head_len(int folder, const char *name)
{
	struct bytes bytes = {0};
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	off_t len = 0;

	if (fd < 0)
		return 0;
	if (!file_read_fd(fd, HEAD_BYTES_MAX, &bytes)) {
		const char *at = strstr(bytes.data, HEAD_END);
		const char *end = at ? strchr(at, '\n') : NULL;

		len = end ? end + 1 - bytes.data : 0;
		free(bytes.data);
	}
	close(fd);
	return len;
}

/* Removes the figures of a session, and all of it if no moment needs its first lines. */
static void remove_session(struct spool *spool, size_t at)
{
	struct spool_session *session = &spool->sessions[at];
	int64_t bytes = 0;
	char name[NAME_SIZE];

	session_name(session->number, name);
	if (has_moments(spool, session->number)) {
		off_t len = head_len(spool->sessions_folder, name);
		int fd = openat(spool->sessions_folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

		bytes = fd >= 0 && len && !ftruncate(fd, len) ? on_disk(len) : 0;
		if (fd >= 0)
			close(fd);
	}
	spool->counts.sessions_removed += session->bytes > bytes;
	spool->session_bytes -= session->bytes - bytes;
	session->bytes = bytes;
	if (!bytes) {
		unlinkat(spool->sessions_folder, name, 0);
		memmove(session, session + 1, (spool->session_count - at - 1) * sizeof(*session));
		spool->session_count--;
	}
}

/* Removes the figures of the oldest sessions until the rest has room. The newest stay, and those that are
 * being written. */
static void limit_sessions(struct spool *spool)
{
	for (size_t at = 0;
	     at + 2 < spool->session_count && spool->session_bytes > spool->keep_bytes / SESSIONS_SHARE;) {
		size_t before = spool->session_count;

		if (!spool->sessions[at].open)
			remove_session(spool, at);
		at += spool->session_count == before;
	}
}

static struct spool_session *session_of(struct spool *spool, const struct spool_file *file)
{
	for (size_t i = spool->session_count; i--;) {
		if (spool->sessions[i].number == file->number)
			return &spool->sessions[i];
	}
	return NULL;
}

static void remove_moment(struct spool *spool, size_t at)
{
	struct spool_moment *moment = &spool->moments[at];
	char name[NAME_SIZE];

	moment_name(moment, name);
	unlinkat(spool->moments_folder, name, 0);
	spool->moment_bytes -= moment->bytes;
	leave_group(spool, moment);
	memmove(moment, moment + 1, (spool->moment_count - at - 1) * sizeof(*moment));
	spool->moment_count--;
	spool->counts.moments_removed++;
}

/* Returns which moment to remove: the smallest of the group with the most bytes. The last moment of a group
 * goes only if no group has two; then the smallest of all goes. */
static size_t least_wanted(const struct spool *spool)
{
	int64_t most = 0;
	unsigned int largest = 0;
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < spool->group_count; i++) {
		const struct spool_group *group = &spool->groups[i];

		if (group->count > 1 && group->bytes > most) {
			most = group->bytes;
			largest = group->group;
		}
	}
	for (size_t i = 0; i < spool->moment_count; i++) {
		if ((!most || spool->moments[i].group == largest) &&
		    (found == SIZE_MAX || spool->moments[i].latency_ns < spool->moments[found].latency_ns))
			found = i;
	}
	return found;
}

static void limit_moments(struct spool *spool)
{
	while (spool->moment_count && spool_bytes(spool) + LOG_BYTES_MAX > spool->keep_bytes)
		remove_moment(spool, least_wanted(spool));
}

int spool_begin(struct spool *spool, struct spool_file *file)
{
	char name[NAME_SIZE];
	int error;

	limit_sessions(spool);
	limit_moments(spool);
	*file = (struct spool_file){.fd = -1, .number = spool->next_session};
	session_name(file->number, name);
	file->fd = openat(spool->sessions_folder, name,
			  O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file->fd < 0)
		return errno;
	error = fsync(spool->sessions_folder) ? errno : 0;
	if (!error && !add_session(spool, file->number, 0))
		error = ENOMEM;
	if (error) {
		close(file->fd);
		file->fd = -1;
		unlinkat(spool->sessions_folder, name, 0);
		return error;
	}
	session_of(spool, file)->open = true;
	return 0;
}

static void resize_session(struct spool *spool, const struct spool_file *file)
{
	struct spool_session *session = session_of(spool, file);

	if (!session)
		return;
	spool->session_bytes += on_disk(file->bytes) - session->bytes;
	session->bytes = on_disk(file->bytes);
}

void spool_line(struct spool *spool, struct spool_file *file, const char *line, size_t len, bool sync)
{
	int error = write_all(file->fd, line, len);

	if (!error)
		error = write_all(file->fd, "\n", 1);
	if (!error && sync && fdatasync(file->fd))
		error = errno;
	if (error) {
		spool->counts.lines_refused++;
		if (!ftruncate(file->fd, file->bytes))
			return;
		/* a part of the line stays; the reader leaves it out */
		error = write_all(file->fd, "\n", 1);
		file->bytes += error ? 0 : 1;
		return;
	}
	file->bytes += (int64_t)len + 1;
	resize_session(spool, file);
}

void spool_end(struct spool *spool, struct spool_file *file)
{
	struct spool_session *session = session_of(spool, file);

	if (session)
		session->open = false;
	fdatasync(file->fd);
	close(file->fd);
	file->fd = -1;
	if (session && !file->bytes) /* it never began */
		remove_session(spool, (size_t)(session - spool->sessions));
	else if (session)
		fold(spool, session);
	limit_sessions(spool);
}

static bool has_formats(const struct spool *spool, const char *line, size_t len)
{
	struct bytes bytes = {0};
	char name[NAME_SIZE];
	bool same = false;
	int fd;

	session_name(spool->formats, name);
	fd = openat(spool->formats_folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return false;
	if (!file_read_fd(fd, FORMATS_BYTES_MAX, &bytes)) {
		same = bytes.len == len + 1 && !memcmp(bytes.data, line, len);
		free(bytes.data);
	}
	close(fd);
	return same;
}

unsigned int spool_formats(struct spool *spool, const char *line, size_t len)
{
	char name[NAME_SIZE];
	struct stat st;

	if (has_formats(spool, line, len))
		return spool->formats;
	session_name(spool->formats + 1, name);
	if (write_whole(spool->formats_folder, name, &line, &len, 1)) {
		spool->counts.lines_refused++;
		return 0;
	}
	spool->formats++;
	spool->formats_bytes += on_disk((int64_t)len + 1);
	if (spool->formats <= FORMATS_MAX)
		return spool->formats;
	session_name(spool->formats - FORMATS_MAX, name);
	if (!fstatat(spool->formats_folder, name, &st, AT_SYMLINK_NOFOLLOW) &&
	    !unlinkat(spool->formats_folder, name, 0)) {
		spool->formats_bytes -= on_disk(st.st_size);
		spool->counts.formats_removed++;
	}
	return spool->formats;
}

void spool_moment(struct spool *spool, struct spool_moment moment, const char *head, const char *line,
		  size_t len)
{
	const char *lines[] = {head, line};
	const size_t lens[] = {strlen(head), len};
	char name[NAME_SIZE];

	moment.number = spool->next_moment++;
	moment.bytes = on_disk((int64_t)(lens[0] + len + 2));
	if (moment.bytes > SPOOL_FILE_MAX || moment.bytes > spool->keep_bytes / 4) {
		spool->counts.moments_removed++;
		return;
	}
	moment_name(&moment, name);
	if (!add_moment(spool, &moment)) {
		spool->counts.moments_refused++;
		return;
	}
	while (spool_bytes(spool) + LOG_BYTES_MAX > spool->keep_bytes) {
		size_t at = least_wanted(spool);
		bool is_new = spool->moments[at].number == moment.number;

		remove_moment(spool, at); /* the new one has no file yet */
		if (is_new)
			return;
	}
	if (write_whole(spool->moments_folder, name, lines, lens, 2)) {
		remove_moment(spool, spool->moment_count - 1);
		spool->counts.moments_removed--;
		spool->counts.moments_refused++;
	}
}

void spool_event(struct spool *spool, const char *line, size_t len)
{
	int error = 0;

	if (spool->log_bytes + (int64_t)len >= LOG_BYTES_MAX / 2) {
		close(spool->log);
		error = renameat(spool->folder, LOG, spool->folder, OLD_LOG) ? errno : 0;
		if (open_log(spool))
			error = errno;
	}
	if (!error)
		error = write_all(spool->log, line, len);
	if (!error)
		error = write_all(spool->log, "\n", 1);
	if (!error && fdatasync(spool->log))
		error = errno;
	if (error) {
		spool->counts.lines_refused++;
		if (spool->log >= 0 && ftruncate(spool->log, spool->log_bytes))
			write_all(spool->log, "\n", 1);
		return;
	}
	spool->log_bytes += (int64_t)len + 1;
	spool->counts = (struct spool_counts){0};
}
