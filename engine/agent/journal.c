// SPDX-License-Identifier: MIT
#include "agent/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/file.h"
#include "base/clock.h"

#define JOURNAL_MAX (64 << 20)
#define COMPACT_FROM (64 << 10)
#define RETRY_NS (NS_PER_S / 100)
#define LOCK_TRIES 1000

char *journal_dir(const char *wanted)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n = -1;

	if (wanted)
		return *wanted ? strdup(wanted) : NULL;
	if (!geteuid())
		return strdup("/var/lib/rtgauge");
	if (state && state[0] == '/')
		n = asprintf(&dir, "%s/rtgauge", state);
	else if (home && home[0] == '/')
		n = asprintf(&dir, "%s/.local/state/rtgauge", home);
	return n < 0 ? NULL : dir;
}

static int make_dirs(const char *dir)
{
	char *path = strdup(dir);
	int error = 0;

	if (!path)
		return ENOMEM;
	for (char *slash = path; slash && !error;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (*path && mkdir(path, 0755) && errno != EEXIST)
			error = errno;
		if (slash)
			*slash = '/';
	}
	free(path);
	/* A part that cannot be made, on a read-only disk or in somebody else's folder, may already exist. */
	return error && access(dir, F_OK) ? error : 0;
}

static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = fd < 0 || fsync(fd) ? errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

static int lock(int fd)
{
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return errno;
		clock_pause_ns(RETRY_NS);
	}
	return ETIMEDOUT;
}

/* Opens and locks the file at this path. While it waits for the lock, another file may replace this one
 * (see compact). */
static int open_locked(struct journal *journal, bool create)
{
	struct stat opened, named;

	for (;;) {
		int error;

		journal->fd =
			open(journal->path,
			     O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (create ? O_CREAT : 0), 0600);
		if (journal->fd < 0)
			return errno;
		error = lock(journal->fd);
		if (!error && fstat(journal->fd, &opened))
			error = errno;
		/* Root obeys the content, so nobody else may be able to write the file. */
		if (!error && (!S_ISREG(opened.st_mode) || opened.st_uid != geteuid() ||
			       opened.st_mode & 022 || opened.st_nlink > 1))
			error = EPERM;
		if (!error && opened.st_size > JOURNAL_MAX)
			error = EFBIG;
		if (!error && !lstat(journal->path, &named) && named.st_ino == opened.st_ino &&
		    named.st_dev == opened.st_dev)
			return 0;
		close(journal->fd);
		journal->fd = -1;
		if (error)
			return error;
	}
}

static bool add_line(struct journal *journal, size_t number, char *line, size_t len)
{
	off_t offset = line - journal->content;
	struct entry entry;
	void *more;

	if (!len || *line == '#')
		return true;
	if (journal_parse(line, len, &entry)) {
		more = realloc(journal->entries, (journal->count + 1) * sizeof(entry));
		if (!more)
			return false;
		journal->entries = more;
		entry.offset = offset;
		journal->entries[journal->count++] = entry;
		if (entry.seq > journal->last_seq)
			journal->last_seq = entry.seq;
		return true;
	}
	more = realloc(journal->damaged, (journal->damaged_count + 1) * sizeof(*journal->damaged));
	if (!more)
		return false;
	journal->damaged = more;
	journal->damaged[journal->damaged_count++] =
		(struct damaged){.offset = offset, .line = number, .text = journal->raw + offset, .len = len};
	return true;
}

static int load(struct journal *journal)
{
	struct bytes bytes;
	size_t number = 0;
	int error = file_read_fd(journal->fd, JOURNAL_MAX, &bytes);

	if (error)
		return error;
	journal->content = bytes.data;
	journal->size = (off_t)bytes.len;
	/* Parsing unescapes in place. */
	journal->raw = malloc(bytes.len + 1);
	if (!journal->raw)
		return ENOMEM;
	memcpy(journal->raw, bytes.data, bytes.len + 1);
	for (char *line = bytes.data, *last = line + bytes.len; line < last;) {
		char *end = memchr(line, '\n', (size_t)(last - line));

		journal->torn = !end;
		if (!end)
			end = last;
		*end = '\0';
		if (!add_line(journal, ++number, line, (size_t)(end - line)))
			return ENOMEM;
		line = end + 1;
	}
	return 0;
}

static void release(struct journal *journal)
{
	close(journal->fd);
	free(journal->entries);
	free(journal->damaged);
	free(journal->content);
	free(journal->raw);
	free(journal->path);
	*journal = (struct journal){.fd = -1};
}

int journal_open(struct journal *journal, const char *dir, bool create)
{
	int error = create ? make_dirs(dir) : 0;

	*journal = (struct journal){.fd = -1};
	if (!error && asprintf(&journal->path, "%s/journal.ndjson", dir) < 0)
		error = ENOMEM;
	if (error)
		return error;
	error = open_locked(journal, create);
	if (error) {
		free(journal->path);
		return error;
	}
	error = load(journal);
	if (!error && create && !journal->size)
		error = sync_dir(dir);
	if (error)
		release(journal);
	return error;
}

static int write_all(int fd, const char *text, size_t len, off_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, text, len, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? errno : EIO;
		text += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

int journal_append(struct journal *journal, struct entry *entries, size_t count)
{
	off_t end = journal->size;
	int error = 0;

	/* Add the missing newline to a line that a crash cut off, so that it does not join the next line. */
	if (journal->torn)
		error = write_all(journal->fd, "\n", 1, end++);
	for (size_t i = 0; i < count && !error; i++) {
		size_t len;
		char *line;

		entries[i].state = STATE_ASKED;
		entries[i].seq = journal->last_seq + 1 + (int64_t)i;
		entries[i].offset = end;
		line = journal_line(&entries[i], &len);
		error = line ? write_all(journal->fd, line, len, end) : ENOMEM;
		free(line);
		end += (off_t)len;
	}
	if (!error && !journal->fleeting && fsync(journal->fd))
		error = errno;
	if (error && ftruncate(journal->fd, journal->size))
		return error; /* entries that were never written do no harm: the old value is still in force
			       */
	if (error)
		return error;
	journal->appended = true;
	journal->torn = false;
	journal->size = end;
	journal->last_seq += (int64_t)count;
	return 0;
}

int journal_mark(struct journal *journal, struct entry *entry, char state)
{
	int error = write_all(journal->fd, &state, 1, entry->offset + STATE_AT);

	if (!error)
		entry->state = state;
	journal->marked |= state == STATE_OVER;
	return error;
}

int journal_set_aside(struct journal *journal, const struct damaged *damaged)
{
	journal->marked = true;
	return write_all(journal->fd, "#", 1, damaged->offset);
}

/* Writes the lines that still count to a new file, which replaces the journal. If that fails, the journal
 * stays as it is. */
static void compact(struct journal *journal)
{
	char *path = NULL, *dir = NULL, *line;
	off_t end = 0;
	int fd = -1, error = 0;
	size_t len;

	if (asprintf(&path, "%s.new", journal->path) < 0)
		return;
	dir = strndup(journal->path, (size_t)(strrchr(journal->path, '/') - journal->path));
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || !dir)
		goto out;
	for (size_t i = 0; i < journal->count && !error; i++) {
		if (journal->entries[i].state == STATE_OVER)
			continue;
		line = journal_line(&journal->entries[i], &len);
		error = line ? write_all(fd, line, len, end) : ENOMEM;
		end += (off_t)len;
		free(line);
	}
	if (error || fsync(fd) || rename(path, journal->path) || sync_dir(dir))
		unlink(path);
out:
	if (fd >= 0)
		close(fd);
	free(path);
	free(dir);
}

static void tidy_up(struct journal *journal)
{
	size_t live = 0;

	/* Appended lines are not among the entries, so compact another time. */
	if (!journal->marked || journal->appended)
		return;
	for (size_t i = 0; i < journal->count; i++)
		live += journal->entries[i].state != STATE_OVER;
	if (!live) {
		if (ftruncate(journal->fd, 0))
			return; /* this is enough, because the lines are marked */
	} else if (journal->size > COMPACT_FROM && live < journal->count / 2) {
		compact(journal);
	}
	/* If this fails, a crash may lose the marks. The same old values are then restored again. */
	if (!journal->fleeting)
		fdatasync(journal->fd);
}

void journal_close(struct journal *journal)
{
	tidy_up(journal);
	release(journal);
}
