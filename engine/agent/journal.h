/* SPDX-License-Identifier: MIT */
/*
 * The settings that were changed and must be restored: DIR/journal.ndjson, one entry a line
 * (docs/formats/agent.md). An entry's state is one letter at a fixed place in its line, so one written
 * byte changes it. This works even on a full disk, and a crash cannot leave it half done. An open journal
 * is locked.
 */
#ifndef RTGAUGE_JOURNAL_H
#define RTGAUGE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/process.h"

#define STATE_AT 10	/* the state's place in the line: after {"state":" */
#define STATE_ASKED 'a' /* may or may not have been written */
#define STATE_SET 's'	/* was written and read back as requested */
#define STATE_OVER 'o'	/* restored, or never written */

struct entry {
	char state;
	bool held; /* set by `deploy apply`, not by a run */
	bool is_volatile;
	int64_t seq;
	int64_t pid, start; /* the owner's process */
	const char *run;
	const char *boot;
	const char *path;
	const char *old;
	const char *wanted;
	off_t offset; /* offset of its line */
};

struct damaged {
	off_t offset;
	size_t line;	  /* from 1 */
	const char *text; /* the old value without its newline; may hold NULs */
	size_t len;
};

struct journal {
	int fd;
	char *path;
	char *content, *raw; /* the texts of entries and damaged lines point into it */
	off_t size;
	bool torn;	       /* the last line has no newline */
	bool marked, appended; /* done since opening */
	bool fleeting;	       /* no entry must survive a power cut, so the disk is not synced */
	int64_t last_seq;
	struct entry *entries; /* in the order in which they were made; finished ones too */
	size_t count;
	struct damaged *damaged;
	size_t damaged_count;
};

/* Returns the journal's folder: `wanted`, or this user's default (malloc'ed). NULL if none is known. */
char *journal_dir(const char *wanted);

/*
 * Opens, locks and reads the journal. Returns 0 or an errno: ENOENT if there is none and not `create`,
 * EPERM if another user could have written it, ETIMEDOUT if another process holds it for 10 s.
 */
int journal_open(struct journal *journal, const char *dir, bool create);

/* Writes new entries (state asked) and waits until they are on disk. Sets seq and offset. Returns 0 or an
 * errno; after an error, the journal has none of the entries. */
int journal_append(struct journal *journal, struct entry *entries, size_t count);

/* Changes the state of an entry whose state on disk is `asked`. Returns 0 or an errno. */
int journal_mark(struct journal *journal, struct entry *entry, char state);

/* Marks a damaged line that was reported. It then begins with # and is not read again. */
int journal_set_aside(struct journal *journal, const struct damaged *damaged);

/* Unlocks the journal. First removes finished lines if they are the only ones, or most of a large file. */
void journal_close(struct journal *journal);

/* Parses one line in place. The line has no newline and ends with NUL. Returns false if it is damaged. */
bool journal_parse(char *line, size_t len, struct entry *entry);

/* Formats one line with its newline into a malloc'ed buffer. NULL: no memory. */
char *journal_line(const struct entry *entry, size_t *len);

#endif
