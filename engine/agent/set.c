// SPDX-License-Identifier: MIT
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_error.h"
#include "agent/journal.h"
#include "agent/options.h"
#include "agent/setting.h"
#include "agent/text.h"
#include "base/boot_id.h"
#include "base/error.h"
#include "base/json.h"
#include "base/verbs.h"

struct item {
	struct entry entry;
	char *old, *now;
	int error; /* of agent/agent_error.h */
};

/* Returns the value to write so that the file looks as before: a file on a disk keeps its last newline. */
static char *text_for(const struct entry *entry, const char *value)
{
	size_t len, value_len;
	bool newline;
	char *text;

	if (!entry->old || !value)
		return NULL;
	len = strlen(entry->old);
	value_len = strlen(value);
	newline = !entry->is_volatile && (!len || entry->old[len - 1] == '\n');
	text = malloc(value_len + 2);
	if (!text)
		return NULL;
	memcpy(text, value, value_len + 1);
	if (newline)
		strcpy(text + value_len, "\n");
	return text;
}

static void write_item(struct journal *journal, struct item *item)
{
	struct entry *entry = &item->entry;
	char *text = text_for(entry, entry->wanted);
	int unread;

	item->error = text ? setting_write(entry->path, entry->is_volatile, text) : ENOMEM;
	free(text);
	unread = setting_read(entry->path, entry->is_volatile, &item->now);
	if (!item->error && unread)
		item->error = unread;
	else if (!item->error && !setting_same(item->now, entry->wanted))
		item->error = AGENT_DIFFERS;
	/* An entry that cannot be marked stays requested, and is restored no matter what its value is. */
	if (!item->error)
		journal_mark(journal, entry, STATE_SET);
	else if (item->now && !strcmp(item->now, entry->old))
		journal_mark(journal, entry, STATE_OVER);
}

static char *trimmed(char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return text;
}

static void print_item(struct item *item, struct json *j)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "set");
	json_str(j, "path", item->entry.path);
	json_str(j, "old", trimmed(item->old));
	json_str(j, "wanted", item->entry.wanted);
	json_str(j, "now", trimmed(item->now));
	json_bool(j, "ok", !item->error);
	json_str(j, "error", agent_errname(item->error));
	json_close(j, '}');
	json_line(j);
}

static int no_journal(const char *dir, int error)
{
	return error_line(
		STATUS_CANNOT_MEASURE, "output",
		"nothing was set, because the journal %s/journal.ndjson cannot be written (%s), and only "
		"the journal allows settings to be put back after a crash; free space, or give --journal "
		"DIR",
		dir, errname(error));
}

/* Reads and records all old values, and then writes the new ones, except with `note`. Returns the exit
 * status. */
static int set_items(const char *dir, struct item *items, size_t count, bool note)
{
	struct entry *kept = calloc(count, sizeof(*kept));
	struct journal journal;
	size_t n = 0;
	int error = kept ? journal_open(&journal, dir, true) : ENOMEM;

	if (error) {
		free(kept);
		return no_journal(dir, error);
	}
	for (size_t i = 0; i < count; i++) {
		items[i].error = setting_read(items[i].entry.path, items[i].entry.is_volatile, &items[i].old);
		items[i].entry.old = items[i].old;
		if (note && items[i].old)
			items[i].entry.wanted = items[i].old;
		if (!items[i].error)
			kept[n++] = items[i].entry;
	}
	error = n ? journal_append(&journal, kept, n) : 0;
	n = 0;
	for (size_t i = 0; i < count && !error; i++) {
		if (items[i].error)
			continue;
		items[i].entry = kept[n++];
		/* A noted setting stays requested, so that it is restored whatever its value is then. */
		if (note)
			items[i].now = items[i].old ? strdup(items[i].old) : NULL;
		else
			write_item(&journal, &items[i]);
	}
	journal_close(&journal);
	free(kept);
	return error ? no_journal(dir, error) : 0;
}

/* Records the present settings of these paths. Returns the exit status. */
static int keep_items(const char *dir, const char *run, int argc, char **argv)
{
	struct journal journal;
	int error = journal_open(&journal, dir, false);
	struct json j;

	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "output",
				  "cannot read the journal %s/journal.ndjson (%s)", dir, errname(error));
	json_start(&j, stdout);
	for (int i = 0; i < argc; i++) {
		size_t count = 0;

		for (size_t k = 0; k < journal.count && !error; k++) {
			struct entry *entry = &journal.entries[k];

			if (entry->state == STATE_OVER || strcmp(entry->run, run) ||
			    strcmp(entry->path, argv[i]))
				continue;
			error = journal_mark(&journal, entry, STATE_OVER);
			count += !error;
		}
		json_open(&j, NULL, '{');
		json_str(&j, "type", "keep");
		json_str(&j, "path", argv[i]);
		json_uint(&j, "count", count);
		json_str(&j, "error", agent_errname(error));
		json_close(&j, '}');
		json_line(&j);
	}
	journal_close(&journal);
	return error ? STATUS_CANNOT_MEASURE : 0;
}

/* Checks the pairs or, with `paths`, only paths. */
static int check_items(int argc, char **argv, bool paths)
{
	if (!paths && (argc < 2 || argc % 2))
		return usage_error("set needs pairs of a path and a value: set --run ID -- PATH VALUE [PATH "
				   "VALUE...]");
	if (paths && argc < 1)
		return usage_error("set --note and set --keep need paths: set --run ID --note -- PATH "
				   "[PATH...]");
	for (int i = 0; i < argc; i += paths ? 1 : 2) {
		if (!setting_is_name(argv[i]) || !text_is_plain(argv[i], PATH_MAX - 1))
			return usage_error(
				"'%.100s' is not a path: a path begins with / (or names a setting of a thread, a group, a trace instance, a module, a network interface, a timer or a share of a cache) and is UTF-8 without control characters, at most %d bytes",
				argv[i], PATH_MAX - 1);
		if (!paths && !text_is_plain(argv[i + 1], SETTING_MAX_LEN - 1))
			return usage_error(
				"the value for %.200s is not one line of UTF-8 of at most %d bytes", argv[i],
				SETTING_MAX_LEN - 1);
	}
	return 0;
}

static int set_all(const char *dir, const struct entry *common, int argc, char **argv, bool note)
{
	size_t step = note ? 1 : 2, count = (size_t)argc / step;
	struct item *items = calloc(count, sizeof(*items));
	bool failed = false;
	struct json j;
	int status;

	if (!items)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "out of memory");
	for (size_t i = 0; i < count; i++) {
		items[i].entry = *common;
		items[i].entry.path = argv[step * i];
		items[i].entry.wanted = note ? "" : argv[step * i + 1];
		items[i].entry.is_volatile = setting_is_volatile(argv[step * i]);
	}
	status = set_items(dir, items, count, note);
	json_start(&j, stdout);
	for (size_t i = 0; i < count; i++) {
		if (!status)
			print_item(&items[i], &j);
		failed |= items[i].error != 0;
		free(items[i].old);
		free(items[i].now);
	}
	free(items);
	return failed && !status ? STATUS_CANNOT_MEASURE : status;
}

static int verb_set(int argc, char **argv)
{
	struct entry common = {0};
	const char *journal = NULL;
	int64_t pid = 0;
	bool note = false, keep = false;
	const struct option_entry table[] = {
		{.shared = agent_option_run, .value = &common.run},
		{.name = "held",
		 .kind = OPTION_FLAG,
		 .value = &common.held,
		 .help = "keep the settings until `restore --held`, even if the owner ends"},
		{.shared = agent_option_journal, .value = &journal},
		{.name = "owner-pid",
		 .kind = OPTION_INT,
		 .value = &pid,
		 .min = 1,
		 .max = INT_MAX,
		 .help = "process ID of the owner; when it has ended, the settings may be put back. "
			 "Default: the parent process"},
		{.name = "note",
		 .kind = OPTION_FLAG,
		 .value = &note,
		 .help = "note the present values, but do not write"},
		{.name = "keep",
		 .kind = OPTION_FLAG,
		 .value = &keep,
		 .help = "keep the named settings as this run left them; they are not put back"},
		{0},
	};
	struct process owner = {0};
	char boot[BOOT_ID_SIZE], *dir;
	bool dashes;
	int rest, status = options_parse_operands(table,
						  " -- PATH VALUE... | --note -- PATH... | --keep -- PATH...",
						  argc, argv, &rest, &dashes);

	if (status)
		return status < 0 ? STATUS_OK : status;
	if (!pid)
		pid = getppid();
	status = check_items(argc - rest, argv + rest, note || keep);
	if (status)
		return status;
	status = agent_check_run(common.run);
	if (status)
		return status;
	if (!process_read((pid_t)pid, &owner) || !process_lives((pid_t)pid, owner.start))
		return error_line(
			STATUS_CANNOT_MEASURE, "owner-gone",
			"nothing was set, because process %lld, the owner of the settings, has ended",
			(long long)pid);
	status = agent_find_journal(journal, &dir);
	if (status)
		return status;
	boot_id_read(boot);
	common.boot = boot;
	common.pid = pid;
	common.start = owner.start;
	/* A closed reader must not stop the verb between writing a setting and noting it. */
	signal(SIGPIPE, SIG_IGN);
	status = keep ? keep_items(dir, common.run, argc - rest, argv + rest)
		      : set_all(dir, &common, argc - rest, argv + rest, note);
	free(dir);
	return status;
}

AGENT_VERB("set", verb_set, "write settings after noting their old values in a journal")
