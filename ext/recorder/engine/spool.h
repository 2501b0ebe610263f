/* SPDX-License-Identifier: MIT */
/*
 * The folder into which the engine records alone (ext/recorder/README.md, `The spool`). It takes at most a
 * given number of bytes, and is whole after a kill, a power cut or a full disk.
 */
#ifndef RTGAUGE_SPOOL_H
#define RTGAUGE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_BYTES_MIN (INT64_C(2) << 20)
#define SPOOL_FILE_MAX (INT64_C(1) << 20) /* the most that the agent's `read` gives of one file */

/* One kept moment. Moments of one group compete for the same room. */
struct spool_moment {
	unsigned int number, session, group;
	int64_t latency_ns, bytes;
};

/* How many moments a group has, and their bytes. */
struct spool_group {
	unsigned int group, count;
	int64_t bytes;
};

/* One file of sessions/. */
struct spool_session {
	unsigned int number;
	int64_t bytes;
	bool open; /* it is being written */
};

struct spool_counts {
	int64_t moments_removed, sessions_removed, formats_removed;
	int64_t moments_refused, lines_refused; /* by a full disk */
};

struct spool {
	int folder, sessions_folder, moments_folder, formats_folder, log;
	int64_t keep_bytes, log_bytes, old_log_bytes, moment_bytes, session_bytes, formats_bytes;
	struct spool_moment *moments; /* by number */
	struct spool_group *groups;   /* by group */
	struct spool_session *sessions;
	size_t moment_count, group_count, session_count;
	unsigned int next_moment, next_session, formats; /* the newest file of formats/; 0: none */
	struct spool_counts counts;			 /* since the last event */
};

/* An open session. */
struct spool_file {
	int fd;
	unsigned int number;
	int64_t bytes;
};

/* Makes or opens the folder, and holds it. Returns 0 or an errno: EPERM if others may write there,
 * EWOULDBLOCK if another recorder holds it. */
int spool_open(struct spool *spool, const char *path, int64_t keep_bytes);
void spool_close(struct spool *spool);

/* Writes a file of the folder whole. Returns 0 or an errno. */
int spool_put(struct spool *spool, const char *name, const char *text);

/* Begins a session. Returns 0 or an errno. */
int spool_begin(struct spool *spool, struct spool_file *file);

/* Appends a line, without its end, to a session. A line that the disk refuses is counted, and leaves nothing
 * behind. sync: wait until the disk has everything. */
void spool_line(struct spool *spool, struct spool_file *file, const char *line, size_t len, bool sync);
void spool_end(struct spool *spool, struct spool_file *file);

/* Returns the number of the file with these formats, which is made if it is new; 0 if it cannot be written.
 */
unsigned int spool_formats(struct spool *spool, const char *line, size_t len);

/* Keeps a moment. Lines without their ends: head says what the recorder knows. */
void spool_moment(struct spool *spool, struct spool_moment moment, const char *head, const char *line,
		  size_t len);

/* Appends a line to the log of what happened, and waits until the disk has it. */
void spool_event(struct spool *spool, const char *line, size_t len);

/* Returns the bytes that the folder takes. */
int64_t spool_bytes(const struct spool *spool);

#endif
