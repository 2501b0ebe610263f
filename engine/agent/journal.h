/* SPDX-License-Identifier: MIT */
/*
 * What was changed and has to be put back: DIR/journal.ndjson, one entry a line (docs/formats/agent.md).
 * An entry's state is one letter at a fixed place of its line, so that it is changed by writing one byte:
 * that works on a full disk and is never half done. While it is open the journal is locked.
 */
#ifndef RTGAUGE_JOURNAL_H
#define RTGAUGE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/process.h"

#define STATE_AT 10	/* its place in the line: behind {"state":" */
#define STATE_ASKED 'a' /* it may or may not have been written yet */
#define STATE_SET 's'	/* it was written and read back as wanted */
#define STATE_OVER 'o'	/* put back, or never written */

struct entry {
	char state;
	bool held; /* by `deploy apply`, not by a run */
	bool is_volatile;
	int64_t seq;
	int64_t pid, start; /* the owner */
	const char *run;
	const char *boot;
	const char *path;
	const char *old;
	const char *wanted;
	off_t offset; /* of its line */
};

struct damaged {
	off_t offset;
	size_t line;	  /* from 1 */
	const char *text; /* as it is there, without the newline; may hold NULs */
	size_t len;
};

struct journal {
	int fd;
	char *path;
	char *content, *raw; /* texts of entries and of damaged lines are in there */
	off_t size;
	bool torn;	       /* the last line has no end */
	bool marked, appended; /* since it was opened */
	bool fleeting; /* nothing that is written has to outlive a power cut: the disk is not waited for */
	int64_t last_seq;
	struct entry *entries; /* in the order they were made; also those that are over */
	size_t count;
	struct damaged *damaged;
	size_t damaged_count;
};

/* Where the journal is: `wanted`, or the default of this user; malloc'ed; NULL: no place is known. */
char *journal_dir(const char *wanted);

/*
 * Opens, locks and reads it. Returns 0 or an errno: ENOENT without `create` where there is none,
 * EPERM where another user could have written it, ETIMEDOUT where somebody else holds it for 10 s.
 */
int journal_open(struct journal *journal, const char *dir, bool create);

/* Writes new entries (state asked) and waits until they are on the disk; fills seq and offset. 0 or an errno:
 * then none is in. */
int journal_append(struct journal *journal, struct entry *entries, size_t count);

/* Changes the state of an entry; the entry is `asked` on disk until then. Returns 0 or an errno. */
int journal_mark(struct journal *journal, struct entry *entry, char state);

/* A damaged line was reported: it begins with # from then on and is read no more. */
int journal_set_aside(struct journal *journal, const struct damaged *damaged);

/* Forgets lines that are over where nothing else remains, or where they are most of a large file; unlocks. */
void journal_close(struct journal *journal);

/* Reads one line in place (without its newline, ending in NUL); false: it is damaged. */
bool journal_parse(char *line, size_t len, struct entry *entry);

/* Writes one line with its newline into a malloc'ed buffer; NULL: no memory. */
char *journal_line(const struct entry *entry, size_t *len);

#endif
