// SPDX-License-Identifier: MIT
#include "agent/restore.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_error.h"
#include "agent/journal.h"
#include "agent/options.h"
#include "agent/programs.h"
#include "agent/setting.h"
#include "agent/setting_group.h"
#include "agent/setting_kind.h"
#include "agent/text.h"
#include "base/boot_id.h"
#include "base/error.h"
#include "base/json.h"
#include "base/verbs.h"

struct outcome {
	const char *action;
	int error; /* of agent/agent_error.h */
	char *now; /* malloc'ed, may be NULL */
	bool over; /* the entry is finished */
};

static bool is_selected(const struct entry *entry, const struct restore_wish *wish, const char *boot)
{
	bool of_run = wish->run && !strcmp(entry->run, wish->run);

	if (entry->state == STATE_OVER)
		return false;
	if (entry->held)
		return wish->held && (!wish->run || of_run);
	if (of_run)
		return true;
	return wish->stale && (strcmp(entry->boot, boot) || !process_lives((pid_t)entry->pid, entry->start));
}

/* If somebody set the same path later and has not restored it, the old value of that entry is our value. */
static bool is_under_another(const struct journal *journal, size_t index)
{
	for (size_t i = index + 1; i < journal->count; i++) {
		if (journal->entries[i].state != STATE_OVER &&
		    !strcmp(journal->entries[i].path, journal->entries[index].path))
			return true;
	}
	return false;
}

/* A file in a group that this journal will remove. The file goes with the group, and cannot be emptied
 * while the group has tasks. */
static bool goes_with_group(const struct journal *journal, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		const struct entry *earlier = &journal->entries[i];
		const char *dir = setting_group_dir(earlier->path);
		size_t len = dir ? strlen(dir) : 0;

		if (dir && earlier->state != STATE_OVER && !strcmp(earlier->old, "absent") &&
		    !strcmp(earlier->run, journal->entries[index].run) &&
		    !strncmp(journal->entries[index].path, dir, len) &&
		    journal->entries[index].path[len] == '/')
			return true;
	}
	return false;
}

/* If a thread has ended, resctrl was unmounted, or a group, a network interface or a timer was removed, there
 * is nothing to restore. A file in /sys/devices may return with its CPU, so its entry stays. */
static bool is_gone(const struct entry *entry, int error)
{
	if (error == ESRCH ||
	    (error == ENODEV && (setting_ethtool.is(entry->path) || setting_resctrl.is(entry->path))) ||
	    (error == ENOENT && setting_timer.is(entry->path)))
		return true;
	return error == ENOENT && entry->is_volatile &&
	       (!strncmp(entry->path, "/proc/", 6) || !strncmp(entry->path, "/sys/fs/cgroup/", 15));
}

/* Returns whether a setting has a value that neither we wrote nor was there before. The kernel itself takes
 * CPUs that go offline from a group of resctrl, and does not give them back; a group that we made stays ours.
 */
static bool is_of_another(const struct entry *entry, const char *now)
{
	if (setting_same(now, entry->wanted))
		return false;
	return !setting_resctrl.is(entry->path) || strcmp(entry->old, "absent") != 0;
}

static struct outcome put_back(const struct entry *entry)
{
	struct outcome outcome = {.action = "failed"};

	outcome.error = setting_read(entry->path, entry->is_volatile, &outcome.now);
	if (is_gone(entry, outcome.error))
		return (struct outcome){.action = "gone", .over = true};
	if (outcome.error)
		return outcome;
	if (!setting_same(outcome.now, entry->old)) {
		/* A different value belongs to somebody else only if we know that ours was written. */
		if (entry->state == STATE_SET && is_of_another(entry, outcome.now)) {
			outcome.action = "left-changed-by-other";
			outcome.over = true;
			return outcome;
		}
		outcome.error = setting_write(entry->path, entry->is_volatile, entry->old);
		if (outcome.error)
			return outcome;
		free(outcome.now);
		outcome.error = setting_read(entry->path, entry->is_volatile, &outcome.now);
		if (!outcome.error && !setting_same(outcome.now, entry->old))
			outcome.error = AGENT_DIFFERS;
		if (outcome.error)
			return outcome;
	}
	outcome.action = "restored";
	outcome.over = true;
	return outcome;
}

static void print_outcome(const struct entry *entry, const struct outcome *outcome, struct json *j)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "restore");
	json_str(j, "path", entry->path);
	json_str(j, "run", entry->run);
	json_str(j, "owner", entry->held ? "held" : "run");
	json_str(j, "old", entry->old);
	json_str(j, "wanted", entry->wanted);
	json_str(j, "now", outcome->now);
	json_str(j, "action", outcome->action);
	json_str(j, "error", agent_errname(outcome->error));
	json_close(j, '}');
	json_line(j);
}

static void print_damaged(const struct damaged *damaged, struct json *j)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "restore");
	json_null(j, "path");
	json_str(j, "action", "damaged");
	json_str(j, "error", "this entry of the journal is damaged, so rtgauge ignored it");
	json_uint(j, "line", damaged->line);
	json_uint(j, "bytes", damaged->len);
	json_strn(j, "text", damaged->text, damaged->len < 4096 ? damaged->len : 4096);
	json_close(j, '}');
	json_line(j);
}

static void print_count(size_t count, size_t failed, struct json *j)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "restored");
	json_uint(j, "count", count);
	json_uint(j, "failed", failed);
	json_close(j, '}');
	json_line(j);
}

/* A run's settings are not restored while its programs live. If there are no settings to restore, a live
 * run's programs are left alone. */
static bool has_to_end(const struct journal *journal, const struct entry *entry,
		       const struct restore_wish *wish, const char *boot)
{
	struct program program;

	if (wish->stale && !process_lives((pid_t)entry->pid, entry->start))
		return true;
	for (size_t i = 0; i < journal->count; i++) {
		const struct entry *other = &journal->entries[i];

		if (!strcmp(other->run, entry->run) && is_selected(other, wish, boot) &&
		    !program_parse(other, &program))
			return true;
	}
	return false;
}

/* Lists the programs that must end first (malloc'ed). */
static size_t list_programs(const struct journal *journal, const struct restore_wish *wish, const char *boot,
			    struct program **programs)
{
	size_t count = 0;

	*programs = malloc((journal->count + 1) * sizeof(**programs));
	for (size_t i = 0; *programs && i < journal->count; i++) {
		const struct entry *entry = &journal->entries[i];
		struct program *program = *programs + count;

		if (entry->state != STATE_OVER && !strcmp(entry->boot, boot) &&
		    program_parse(entry, program) && program_lives(program) &&
		    has_to_end(journal, entry, wish, boot))
			count++;
	}
	return count;
}

static void print_program(const struct program *program, struct json *j)
{
	char path[64];
	const struct entry entry = {.path = path, .run = program->run, .old = "absent", .wanted = "present"};
	const struct outcome outcome = {.action = program->error ? "failed" : "ended",
					.error = program->error,
					.now = program->error ? "present" : "absent"};

	snprintf(path, sizeof(path), "program:%d:%lld", (int)program->pid, (long long)program->start);
	print_outcome(&entry, &outcome, j);
}

/*
 * Ends the programs that may use the settings to restore. The journal is unlocked meanwhile, because the
 * programs' guards write to it. Returns 0, or an errno after closing the journal.
 */
static int end_programs(struct journal *journal, const char *dir, const struct restore_wish *wish,
			const char *boot, struct json *j, size_t *failed)
{
	struct program *programs;
	size_t count = list_programs(journal, wish, boot, &programs);
	int error = 0;

	if (count) {
		journal_close(journal);
		programs_end(programs, count);
		for (size_t i = 0; i < count; i++) {
			print_program(&programs[i], j);
			*failed += programs[i].error != 0;
		}
		error = journal_open(journal, dir, false);
	}
	free(programs);
	return error;
}

/* Marks all programs that have ended as finished, no matter who started them. Keeps this journal's
 * programs that live. */
static void forget_programs(struct journal *journal, const char *boot)
{
	for (size_t i = 0; i < journal->count; i++) {
		struct entry *entry = &journal->entries[i];
		struct program program;

		if (entry->state != STATE_OVER && program_parse(entry, &program) &&
		    (strcmp(entry->boot, boot) || !program_lives(&program)))
			(void)journal_mark(journal, entry, STATE_OVER);
	}
}

/* A program that could not be ended may be running in the module. Without the module, the kernel itself
 * would crash. */
static bool is_in_use(const struct journal *journal, const struct entry *entry)
{
	struct program program;

	if (!setting_module.is(entry->path))
		return false;
	for (size_t i = 0; i < journal->count; i++) {
		if (journal->entries[i].state != STATE_OVER && !strcmp(journal->entries[i].run, entry->run) &&
		    program_parse(&journal->entries[i], &program))
			return true;
	}
	return false;
}

static struct outcome restore_entry(struct journal *journal, size_t index, const char *boot)
{
	struct entry *entry = &journal->entries[index];
	struct outcome outcome;
	int error;

	if (entry->is_volatile && strcmp(entry->boot, boot))
		outcome = (struct outcome){.action = "dropped-after-reboot", .over = true};
	else if (is_in_use(journal, entry))
		outcome = (struct outcome){.action = "left-in-use", .error = AGENT_IN_USE};
	else if (is_under_another(journal, index))
		outcome = (struct outcome){.action = "left-under-another"};
	else if (goes_with_group(journal, index))
		outcome = (struct outcome){.action = "gone", .over = true};
	else
		outcome = put_back(entry);
	if (outcome.over) {
		error = journal_mark(journal, entry, STATE_OVER);
		if (error)
			outcome.error = error;
	}
	return outcome;
}

int restore_settings(const char *dir, const struct restore_wish *wish, FILE *out)
{
	size_t count = 0, failed = 0;
	struct journal journal;
	char boot[BOOT_ID_SIZE];
	struct program program;
	struct json j;
	int error = journal_open(&journal, dir, false);

	json_start(&j, out);
	boot_id_read(boot);
	if (!error)
		error = end_programs(&journal, dir, wish, boot, &j, &failed);
	if (error == ENOENT || error == ENOTDIR) {
		print_count(0, 0, &j);
		return 0;
	}
	if (error) {
		json_open(&j, NULL, '{');
		json_str(&j, "type", "restore");
		json_null(&j, "path");
		json_str(&j, "action", "failed");
		json_str(&j, "error", errname(error));
		json_str(&j, "journal", dir);
		json_close(&j, '}');
		json_line(&j);
		print_count(0, 1, &j);
		return STATUS_CANNOT_MEASURE;
	}
	forget_programs(&journal, boot);
	for (size_t i = 0; i < journal.damaged_count; i++) {
		print_damaged(&journal.damaged[i], &j);
		journal_set_aside(&journal, &journal.damaged[i]);
		failed++;
	}
	for (size_t i = journal.count; i-- > 0;) {
		struct outcome outcome;

		if (!is_selected(&journal.entries[i], wish, boot) ||
		    program_parse(&journal.entries[i], &program))
			continue;
		outcome = restore_entry(&journal, i, boot);
		print_outcome(&journal.entries[i], &outcome, &j);
		count += !strcmp(outcome.action, "restored");
		failed += outcome.error != 0;
		free(outcome.now);
	}
	journal_close(&journal);
	print_count(count, failed, &j);
	return failed ? STATUS_CANNOT_MEASURE : 0;
}

static int verb_restore(int argc, char **argv)
{
	struct restore_wish wish = {0};
	const char *journal = NULL;
	const struct option_entry table[] = {
		{.shared = agent_option_run, .value = &wish.run},
		{.name = "stale",
		 .kind = OPTION_FLAG,
		 .value = &wish.stale,
		 .help = "put back settings whose owner has ended"},
		{.name = "held",
		 .kind = OPTION_FLAG,
		 .value = &wish.held,
		 .help = "also put back settings that `set --held` keeps"},
		{.shared = agent_option_journal, .value = &journal},
		{0},
	};
	char *dir, *lines = NULL;
	size_t len = 0;
	FILE *out;
	int status = options_parse(table, argc, argv);

	if (status)
		return status < 0 ? STATUS_OK : status;
	status = wish.run ? agent_check_run(wish.run) : 0;
	if (status)
		return status;
	status = agent_find_journal(journal, &dir);
	if (status)
		return status;
	if (!wish.run)
		wish.stale = true;
	/* A slow or dead reader must not prevent restoring. */
	signal(SIGPIPE, SIG_IGN);
	out = open_memstream(&lines, &len);
	status = out ? restore_settings(dir, &wish, out)
		     : error_line(STATUS_CANNOT_MEASURE, "internal", "out of memory");
	if (out) {
		fclose(out);
		fwrite(lines, 1, len, stdout);
	}
	free(lines);
	free(dir);
	return fflush(stdout) ? STATUS_CANNOT_MEASURE : status;
}

AGENT_VERB("restore", verb_restore, "put settings back")
