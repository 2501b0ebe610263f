// SPDX-License-Identifier: MIT
/* The folder into which the engine records alone: what it keeps, and what a kill leaves. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/file.h"
#include "ext/recorder/engine/spool.h"
#include "tests/check.h"
#include "tests/cm.h"

#define LINE_LEN 9000 /* three blocks with its head */

static char path[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/rtgauge-spool-XXXXXX");
	return mkdtemp(path) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", path);
	return system(command); /* NOLINT(cert-env33-c): a constant path */
}

/* Returns the bytes of all files, in whole blocks, and their number. */
static int64_t bytes_in(const char *part, unsigned int *count)
{
	char folder[128];
	struct dirent *entry;
	struct stat st;
	int64_t bytes = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/%s", path, part);
	dir = opendir(folder);
	assert_non_null(dir);
	*count = 0;
	while ((entry = readdir(dir))) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		bytes += (st.st_size + 4095) / 4096 * 4096;
		++*count;
	}
	closedir(dir);
	return bytes;
}

static void keep(struct spool *spool, unsigned int session, unsigned int group, int64_t latency_ns)
{
	static char line[LINE_LEN + 1];

	memset(line, 'x', LINE_LEN);
	spool_moment(spool,
		     (struct spool_moment){.session = session, .group = group, .latency_ns = latency_ns},
		     "{\"type\":\"kept\"}", line, LINE_LEN);
}

static bool has(const struct spool *spool, unsigned int group, int64_t latency_ns)
{
	for (size_t i = 0; i < spool->moment_count; i++) {
		if (spool->moments[i].group == group && spool->moments[i].latency_ns == latency_ns)
			return true;
	}
	return false;
}

/* The groups have exactly the moments. */
static void assert_grouped(const struct spool *spool)
{
	size_t count = 0;

	for (size_t i = 0; i < spool->group_count; i++) {
		const struct spool_group *group = &spool->groups[i];
		int64_t bytes = 0;
		unsigned int members = 0;

		assert_true(!i || group[-1].group < group->group);
		for (size_t k = 0; k < spool->moment_count; k++) {
			if (spool->moments[k].group == group->group) {
				bytes += spool->moments[k].bytes;
				members++;
			}
		}
		assert_true(members > 0);
		assert_int_equal(group->count, members);
		assert_int_equal(group->bytes, bytes);
		count += members;
	}
	assert_int_equal(count, spool->moment_count);
}

static void groups_follow_their_moments(void **state)
{
	struct spool spool;
	size_t count;

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	for (unsigned int i = 0; i < 400; i++) { /* new groups come, and whole groups go */
		keep(&spool, 1, (i * 2654435761U) >> (i % 3 ? 29 : 22), i % 7);
		if (i % 40 == 39)
			assert_grouped(&spool);
	}
	assert_true(spool.counts.moments_removed > 100);
	count = spool.moment_count;
	spool_close(&spool);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool.moment_count, count);
	for (size_t i = 1; i < count; i++)
		assert_true(spool.moments[i - 1].number < spool.moments[i].number);
	assert_grouped(&spool);
	keep(&spool, 1, 5, 900);
	assert_grouped(&spool);
	spool_close(&spool);
}

static void if_no_group_has_two_the_smallest_goes(void **state)
{
	struct spool spool;

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	for (unsigned int i = 1; i <= 400; i++)
		keep(&spool, 1, i, 1000 - i);
	assert_grouped(&spool);
	assert_true(has(&spool, 1, 999));
	assert_false(has(&spool, 400, 600));
	keep(&spool, 1, 401, 5000);
	assert_true(has(&spool, 401, 5000) && has(&spool, 1, 999));
	assert_grouped(&spool);
	spool_close(&spool);
}

static void a_storm_removes_only_its_own_moments(void **state)
{
	struct spool spool;
	unsigned int count;
	int64_t removed;

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	for (unsigned int group = 1; group <= 9; group++)
		keep(&spool, 1, group, 100);
	for (int64_t i = 0; i < 2000; i++)
		keep(&spool, 1, 77, 1000 + i);
	for (unsigned int group = 1; group <= 9; group++)
		assert_true(has(&spool, group, 100));
	assert_true(has(&spool, 77, 2999));
	assert_false(has(&spool, 77, 1000));
	removed = spool.counts.moments_removed;
	assert_int_equal(removed, 2009 - (int64_t)spool.moment_count);
	assert_true(bytes_in("moments", &count) < SPOOL_BYTES_MIN);
	assert_int_equal(count, spool.moment_count);
	assert_true(spool_bytes(&spool) <= SPOOL_BYTES_MIN);
	spool_close(&spool);
}

static void the_next_recorder_finds_what_was_kept(void **state)
{
	struct spool spool;
	int fd;

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	keep(&spool, 5, 1, -3);
	keep(&spool, 5, 2, 700);
	assert_int_equal(spool_open(&(struct spool){0}, path, SPOOL_BYTES_MIN), EWOULDBLOCK);
	fd = openat(spool.moments_folder, ".new", O_WRONLY | O_CREAT, 0600); /* a kill left it */
	assert_true(fd >= 0);
	close(fd);
	spool_close(&spool);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool.moment_count, 2);
	assert_true(has(&spool, 1, -3) && has(&spool, 2, 700));
	assert_int_equal(spool.next_moment, 3);
	assert_int_equal(faccessat(spool.moments_folder, ".new", F_OK, 0), -1);
	spool_close(&spool);
}

static void old_figures_go_but_the_lines_that_moments_need_stay(void **state)
{
	static const char started[] = "{\"type\":\"started\",\"series\":0,\"start_ns\":1}";
	static char window[100000];
	struct spool spool;
	struct stat st;

	(void)state;
	memset(window, 'w', sizeof(window) - 1);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	for (unsigned int i = 1; i <= 40; i++) {
		struct spool_file file;

		assert_int_equal(spool_begin(&spool, &file), 0);
		assert_int_equal(file.number, i);
		spool_line(&spool, &file, started, strlen(started), false);
		spool_line(&spool, &file, window, strlen(window), false);
		if (i == 1)
			keep(&spool, i, 1, 100);
		spool_end(&spool, &file);
	}
	assert_true(spool.session_bytes <= SPOOL_BYTES_MIN / 2 + INT64_C(3) * 102400);
	assert_true(spool_bytes(&spool) <= SPOOL_BYTES_MIN);
	assert_int_equal(fstatat(spool.sessions_folder, "00000001.ndjson", &st, 0), 0);
	assert_int_equal(st.st_size, strlen(started) + 1);
	assert_int_equal(fstatat(spool.sessions_folder, "00000002.ndjson", &st, 0), -1);
	assert_int_equal(fstatat(spool.sessions_folder, "00000040.ndjson", &st, 0), 0);
	assert_true(spool.counts.sessions_removed >= 25);
	spool_close(&spool);
}

static void a_session_that_is_being_written_stays_whole(void **state)
{
	static const char started[] = "{\"type\":\"started\",\"series\":0,\"start_ns\":1}";
	static char window[100000];
	struct spool_file file, failing;
	struct spool spool;
	struct stat st;

	(void)state;
	memset(window, 'w', sizeof(window) - 1);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool_begin(&spool, &file), 0);
	spool_line(&spool, &file, started, strlen(started), false);
	for (int i = 0; i < 12; i++)
		spool_line(&spool, &file, window, strlen(window), false);
	for (int i = 0; i < 5; i++) { /* the next ones fail */
		assert_int_equal(spool_begin(&spool, &failing), 0);
		spool_line(&spool, &failing, "{}", 2, false);
		spool_end(&spool, &failing);
	}
	assert_true(spool.session_bytes > SPOOL_BYTES_MIN / 2);
	spool_line(&spool, &file, window, strlen(window), false);
	assert_int_equal(fstatat(spool.sessions_folder, "00000001.ndjson", &st, 0), 0);
	assert_int_equal(st.st_size, file.bytes);
	assert_int_equal(spool.counts.lines_refused, 0);
	spool_end(&spool, &file); /* it may go now */
	assert_true(spool.session_bytes <= SPOOL_BYTES_MIN / 2);
	spool_close(&spool);
}

static void a_session_that_cannot_begin_has_no_file(void **state)
{
	struct spool spool;
	struct spool_file file;
	int folder;

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	folder = openat(spool.folder, "sessions", O_PATH | O_DIRECTORY | O_CLOEXEC); /* it has no fsync */
	assert_int_equal(dup3(folder, spool.sessions_folder, O_CLOEXEC), spool.sessions_folder);
	close(folder);
	assert_int_equal(spool_begin(&spool, &file), EBADF);
	assert_int_equal(file.fd, -1);
	assert_int_equal(faccessat(spool.sessions_folder, "00000001.ndjson", F_OK, 0), -1);
	assert_int_equal(spool.session_count, 0);
	spool_close(&spool);
}

static void formats_are_kept_once(void **state)
{
	struct spool spool;
	char text[16];

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool_formats(&spool, "one", 3), 1);
	assert_int_equal(spool_formats(&spool, "one", 3), 1);
	spool_close(&spool);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool_formats(&spool, "one", 3), 1);
	for (unsigned int i = 2; i <= 20; i++) {
		snprintf(text, sizeof(text), "kernel %u", i);
		assert_int_equal(spool_formats(&spool, text, strlen(text)), i);
	}
	assert_int_equal(spool.counts.formats_removed, 12);
	assert_int_equal(spool.formats_bytes, 8 * 4096);
	spool_close(&spool);
}

static void the_log_is_limited_and_counts_are_written_once(void **state)
{
	static char line[5000];
	struct spool spool;

	(void)state;
	memset(line, 'e', sizeof(line) - 1);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	spool.counts.moments_removed = 3;
	for (int i = 0; i < 300; i++)
		spool_event(&spool, line, strlen(line));
	assert_int_equal(spool.counts.moments_removed, 0);
	assert_true(spool.log_bytes + spool.old_log_bytes <= 512 << 10);
	assert_true(spool.old_log_bytes > 0);
	spool_close(&spool);
}

static void a_folder_that_others_may_write_is_refused(void **state)
{
	struct spool spool;

	(void)state;
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), EPERM);
	spool_close(&spool);
}

static void a_session_without_a_line_leaves_no_file(void **state)
{
	struct spool_file file, other;
	struct spool spool;
	unsigned int count;

	(void)state;
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool_begin(&spool, &file), 0);
	assert_int_equal(spool_begin(&spool, &other), 0);
	spool_line(&spool, &other, "{}", 2, false);
	spool_end(&spool, &file);
	assert_int_equal(bytes_in("sessions", &count), 4096);
	assert_int_equal(count, 1);
	assert_int_equal(spool.session_count, 1);
	assert_int_equal(spool.counts.sessions_removed, 0);
	spool_end(&spool, &other);
	bytes_in("sessions", &count);
	assert_int_equal(count, 1);
	spool_close(&spool);
}

/* Windows of -3, 5 and 5 ns, and of 5 and four times 40 ns with a missed one of 7 ns. */
#define WINDOW_OF(NUMBER, FIGURES)                                                                           \
	"{\"type\":\"window\",\"series\":" NUMBER ",\"phase\":\"measure\",\"index\":0," FIGURES "\"}\n"
#define FIRST                                                                                                \
	"\"start_ns\":100,\"end_ns\":200,\"count\":3,\"missed\":0,\"min_ns\":-3,\"max_ns\":5,\"sum_ns\":7,"  \
	"\"m2_ns2\":42.66666666666667,\"bins\":\"HCQE\",\"missed_bins\":\""
#define SECOND                                                                                               \
	"\"start_ns\":200,\"end_ns\":300,\"count\":5,\"missed\":1,\"min_ns\":5,\"max_ns\":40,"               \
	"\"sum_ns\":165,\"m2_ns2\":980,\"bins\":\"KCmCI\",\"missed_bins\":\"OC"
#define CLOCKS_OF(MONOTONIC, REALTIME)                                                                       \
	"{\"type\":\"clocks\",\"monotonic_ns\":" MONOTONIC ",\"boottime_ns\":" MONOTONIC                     \
	",\"realtime_ns\":" REALTIME "}\n"
#define STARTED CLOCKS_OF("0", "500") "{\"type\":\"started\",\"series\":0,\"start_ns\":100}\n"
#define DAMAGED "{\"type\":\"window\",\"series\":0,\"phase\":\"measure\",\"index\":0,\"sta\n"
#define CUT                                                                                                  \
	WINDOW_OF("0", "\"start_ns\":0,\"end_ns\":9,\"count\":2,\"missed\":0,\"min_ns\":0,\"max_ns\":0,"     \
		       "\"sum_ns\":0,\"m2_ns2\":0,\"bins\":\"AC\",\"missed_bins\":\"")
#define SET CLOCKS_OF("200", "100000700")
#define SLEPT                                                                                                \
	"{\"type\":\"clocks\",\"monotonic_ns\":210,\"boottime_ns\":10000210,\"realtime_ns\":110000710}\n"
#define ENDED "{\"type\":\"end\"}\n" CLOCKS_OF("310", "110000810")
#define WHOLE                                                                                                \
	STARTED WINDOW_OF("0", FIRST) CLOCKS_OF("110", "610") WINDOW_OF("7", FIRST)                          \
		DAMAGED SET CUT SLEPT WINDOW_OF("0", SECOND)                                                 \
	ENDED

static char *session_text(void)
{
	char place[128];
	struct bytes bytes;

	snprintf(place, sizeof(place), "%s/sessions/00000001.ndjson", path);
	assert_int_equal(file_read(place, 1 << 20, &bytes), 0);
	return bytes.data;
}

/* Writes the session anew, without a spool. */
static void put_session(const char *text)
{
	char place[128];
	FILE *out;

	snprintf(place, sizeof(place), "%s/sessions/00000001.ndjson", path);
	out = fopen(place, "we");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void begin_session(struct spool *spool, struct spool_file *file)
{
	static const char whole[] = WHOLE;

	assert_int_equal(spool_open(spool, path, SPOOL_BYTES_MIN), 0);
	assert_int_equal(spool_begin(spool, file), 0);
	spool_line(spool, file, whole, sizeof(whole) - 2, false);
}

static void the_windows_of_a_session_that_is_over_are_folded(void **state)
{
	static const char before[] = STARTED DAMAGED SET CUT SLEPT, after[] = ENDED;
	struct spool_file file;
	struct spool spool;
	char *text, *again, *first, *second;

	(void)state;
	begin_session(&spool, &file);
	spool_end(&spool, &file);
	assert_int_equal(spool.session_bytes, 4096);
	text = session_text();
	assert_memory_equal(text, before, strlen(before));
	first = text + strlen(before);
	second = strchr(first, '\n') + 1;
	assert_string_equal(strchr(second, '\n') + 1, after);
	assert_true(field_is(first, "type", "\"folded\"") && field_int(first, "series") == 0);
	assert_true(field_int(first, "start_ns") == 100 && field_int(first, "end_ns") == 300);
	assert_true(field_int(first, "count") == 8 && field_int(first, "missed") == 1);
	assert_true(field_int(first, "min_ns") == -3 && field_int(first, "max_ns") == 40);
	assert_int_equal(field_int(first, "sum_ns"), 172);
	assert_true(field_real(first, "m2_ns2") > 2785.999 && field_real(first, "m2_ns2") < 2786.001);
	/* written by another program */
	assert_true(field_is(first, "bins", "\"AAXoUQwRk\""));
	assert_true(field_is(first, "missed_bins", "\"AAXpk\""));
	assert_true(field_int(second, "series") == 7 && field_int(second, "count") == 3);
	spool_close(&spool);
	assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
	again = session_text();
	assert_string_equal(again, text);
	spool_close(&spool);
	free(text);
	free(again);
}

static void a_session_that_cannot_be_folded_stays(void **state)
{
	struct rlimit before, none = {0};
	struct spool_file file;
	struct spool spool;
	unsigned int count;
	char *text;

	(void)state;
	begin_session(&spool, &file);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	spool_end(&spool, &file);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	text = session_text();
	assert_string_equal(text, WHOLE);
	free(text);
	bytes_in("sessions", &count);
	assert_int_equal(count, 1);
	spool_close(&spool);
}

/* Opens the spool, which folds the session, and is killed at this stop: each system call has two. Returns
 * whether it ended before. */
static bool killed_at(int stop)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		struct spool spool;

		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(spool_open(&spool, path, SPOOL_BYTES_MIN) ? 1 : 0);
	}
	for (int at = 0; waitpid(pid, &status, 0) == pid && WIFSTOPPED(status); at++) {
		if (at == stop)
			kill(pid, SIGKILL);
		else
			assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
	}
	assert_true(WIFSIGNALED(status) || !WEXITSTATUS(status));
	return WIFEXITED(status);
}

static void a_kill_while_a_session_is_folded_loses_nothing(void **state)
{
	struct spool_file file;
	struct spool spool;
	char *folded, *text;
	int whole = 0, stop = 0;

	(void)state;
	begin_session(&spool, &file);
	spool_end(&spool, &file);
	spool_close(&spool);
	folded = session_text();
	for (bool ended = false; !ended; stop++) {
		put_session(WHOLE);
		ended = killed_at(stop);
		text = session_text();
		if (strcmp(text, folded))
			assert_string_equal(text, WHOLE);
		whole += strcmp(text, folded) != 0;
		free(text);
		assert_int_equal(spool_open(&spool, path, SPOOL_BYTES_MIN), 0);
		text = session_text();
		assert_string_equal(text, folded);
		free(text);
		assert_int_equal(faccessat(spool.sessions_folder, ".new", F_OK, 0), -1);
		spool_close(&spool);
	}
	assert_true(whole > 20 && stop > whole + 2); /* kills came before and after the new file's name */
	free(folded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_storm_removes_only_its_own_moments, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(groups_follow_their_moments, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(if_no_group_has_two_the_smallest_goes, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(the_next_recorder_finds_what_was_kept, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(old_figures_go_but_the_lines_that_moments_need_stay,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(a_session_that_is_being_written_stays_whole, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_session_that_cannot_begin_has_no_file, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_session_without_a_line_leaves_no_file, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(the_windows_of_a_session_that_is_over_are_folded, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_session_that_cannot_be_folded_stays, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_kill_while_a_session_is_folded_loses_nothing, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(formats_are_kept_once, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(the_log_is_limited_and_counts_are_written_once, make_folder,
						remove_folder),
		cmocka_unit_test_setup_teardown(a_folder_that_others_may_write_is_refused, make_folder,
						remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
