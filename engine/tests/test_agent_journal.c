// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/journal.h"
#include "tests/cm.h"

static const struct entry example = {
	.run = "run-1",
	.boot = "76328750-6b54-4df6-bb1c-2467df2ae525",
	.pid = 4711,
	.start = 318888,
	.is_volatile = true,
	.path = "/sys/a \"quoted\" \\ path/\xc3\xa4",
	.old = "0\n\ttab \x7f\x01 end",
	.wanted = "",
};

static char dir[64], path[128];

static int fresh_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/rtgauge-test-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/journal.ndjson", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

static void add(int count)
{
	struct journal journal;

	assert_int_equal(journal_open(&journal, dir, true), 0);
	for (int i = 0; i < count; i++) {
		struct entry entry = example;

		assert_int_equal(journal_append(&journal, &entry, 1), 0);
	}
	journal_close(&journal);
}

static void write_raw(const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static off_t file_size(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void a_line_comes_back_as_it_was(void **state)
{
	struct entry entry = example, back;
	size_t len;
	char *line;

	(void)state;
	entry.state = STATE_ASKED;
	entry.seq = INT64_MAX;
	entry.held = true;
	line = journal_line(&entry, &len);
	assert_non_null(line);
	assert_int_equal(line[len - 1], '\n');
	line[len - 1] = '\0';
	assert_true(journal_parse(line, len - 1, &back));
	assert_int_equal(back.state, STATE_ASKED);
	assert_true(back.seq == INT64_MAX && back.held && back.is_volatile && back.pid == 4711 &&
		    back.start == 318888);
	assert_string_equal(back.run, example.run);
	assert_string_equal(back.boot, example.boot);
	assert_string_equal(back.path, example.path);
	assert_string_equal(back.old, example.old);
	assert_string_equal(back.wanted, "");
	free(line);
}

static void any_changed_byte_but_the_state_is_seen(void **state)
{
	struct entry entry = example, back;
	size_t len;
	char *line;

	(void)state;
	entry.state = STATE_SET;
	entry.seq = 1;
	line = journal_line(&entry, &len);
	line[--len] = '\0';
	for (size_t i = 0; i < len; i++) {
		char *copy = strdup(line);

		copy[i] ^= 1;
		assert_false(journal_parse(copy, len, &back));
		free(copy);
	}
	/* Torn after any byte. */
	for (size_t i = 0; i < len; i++) {
		char *copy = strndup(line, i);

		assert_false(journal_parse(copy, i, &back));
		free(copy);
	}
	line[10] = STATE_OVER;
	assert_true(journal_parse(line, len, &back));
	assert_int_equal(back.state, STATE_OVER);
	free(line);
}

static void a_torn_end_stops_neither_what_is_before_nor_after(void **state)
{
	struct journal journal;

	(void)state;
	add(2);
	write_raw("{\"state\":\"a\",\"seq\":3,\"own", O_APPEND);
	add(1);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal.count, 3);
	assert_int_equal(journal.damaged_count, 1);
	assert_int_equal(journal.damaged[0].line, 3);
	assert_int_equal(journal.damaged[0].len, 25);
	assert_memory_equal(journal.damaged[0].text, "{\"state\":\"a\",\"seq\":3,\"own", 25);
	assert_int_equal(journal.entries[2].seq, 3);
	assert_int_equal(journal_set_aside(&journal, &journal.damaged[0]), 0);
	journal_close(&journal);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal.count, 3);
	assert_int_equal(journal.damaged_count, 0);
	journal_close(&journal);
}

static void it_is_emptied_when_all_is_over(void **state)
{
	struct journal journal;

	(void)state;
	add(2);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal_mark(&journal, &journal.entries[0], STATE_OVER), 0);
	journal_close(&journal);
	assert_true(file_size() > 0);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal.entries[0].state, STATE_OVER);
	assert_int_equal(journal.entries[1].state, STATE_ASKED);
	assert_int_equal(journal_mark(&journal, &journal.entries[1], STATE_OVER), 0);
	journal_close(&journal);
	assert_int_equal(file_size(), 0);
}

static void what_is_appended_stays_when_older_ones_are_over(void **state)
{
	struct journal journal;
	struct entry entry = example;

	(void)state;
	add(1);
	assert_int_equal(journal_open(&journal, dir, true), 0);
	assert_int_equal(journal_append(&journal, &entry, 1), 0);
	assert_int_equal(journal_mark(&journal, &journal.entries[0], STATE_OVER), 0);
	journal_close(&journal);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal.count, 2);
	assert_int_equal(journal.entries[1].state, STATE_ASKED);
	journal_close(&journal);
}

static void a_large_one_is_written_anew_without_what_is_over(void **state)
{
	struct journal journal;
	off_t before;

	(void)state;
	add(400);
	before = file_size();
	assert_true(before > 64 << 10);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	for (size_t i = 0; i < journal.count; i++) {
		if (i != 7)
			assert_int_equal(journal_mark(&journal, &journal.entries[i], STATE_OVER), 0);
	}
	journal_close(&journal);
	assert_true(file_size() < before / 100);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal.count, 1);
	assert_int_equal(journal.damaged_count, 0);
	assert_int_equal(journal.entries[0].seq, 8);
	assert_string_equal(journal.entries[0].old, example.old);
	journal_close(&journal);
}

static void only_a_file_that_nobody_else_can_write_is_obeyed(void **state)
{
	struct journal journal;
	char other[160];

	(void)state;
	assert_int_equal(journal_open(&journal, dir, false), ENOENT);
	add(1);
	assert_int_equal(chmod(path, 0620), 0);
	assert_int_equal(journal_open(&journal, dir, false), EPERM);
	assert_int_equal(chmod(path, 0600), 0);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(link(path, other), 0);
	assert_int_equal(journal_open(&journal, dir, false), EPERM);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(journal_open(&journal, dir, false), ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(journal_open(&journal, dir, true), EPERM);
}

static void rubbish_is_damaged_and_nothing_more(void **state)
{
	struct journal journal;

	(void)state;
	write_raw("\n\nnot json\n{}\n# set aside\n\"\n{\"state\":\"a\"}", 0);
	assert_int_equal(journal_open(&journal, dir, false), 0);
	assert_int_equal(journal.count, 0);
	assert_int_equal(journal.damaged_count, 4);
	journal_close(&journal);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, fresh_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_comes_back_as_it_was),
		cmocka_unit_test(any_changed_byte_but_the_state_is_seen),
		IN_DIR(a_torn_end_stops_neither_what_is_before_nor_after),
		IN_DIR(it_is_emptied_when_all_is_over),
		IN_DIR(what_is_appended_stays_when_older_ones_are_over),
		IN_DIR(a_large_one_is_written_anew_without_what_is_over),
		IN_DIR(only_a_file_that_nobody_else_can_write_is_obeyed),
		IN_DIR(rubbish_is_damaged_and_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
