// SPDX-License-Identifier: MIT
#include "harness/quota.h"

#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

#define GROUPS_MAX 16
#define LOOKS 64 /* more looks than a second has */
#define FOLLOWED_MAX 64
#define FOLDER_MAX 512
#define STAT_MAX 1024
#define LINE_MAX_LEN 1024

struct look {
	int64_t time_ns, until_ns; /* before and after the reading */
	struct quota_counts counts;
};

struct group {
	char folder[FOLDER_MAX];
	int file;
	struct look looks[LOOKS];
	unsigned int count; /* of all looks; the last LOOKS are kept */
};

/* Not a static variable, because these are locked in memory even if nothing is explained. */
struct quota {
	struct group groups[GROUPS_MAX];
	unsigned int group_count;
	pid_t followed[FOLLOWED_MAX];
	unsigned int followed_count;
};

static struct quota *quota;

static int64_t value_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoll(line + len, NULL, 10);
	}
	return -1;
}

bool quota_parse(const char *text, struct quota_counts *counts)
{
	int64_t us = value_of(text, "throttled_usec");

	counts->periods = value_of(text, "nr_periods");
	counts->times = value_of(text, "nr_throttled");
	counts->ns = us >= 0 && us < INT64_MAX / 1000 ? us * 1000 : value_of(text, "throttled_time");
	return counts->times >= 0 && counts->ns >= 0;
}

static bool look_at(struct group *group, int64_t now_ns)
{
	struct look *look = &group->looks[group->count % LOOKS];
	char text[STAT_MAX];
	ssize_t len = pread(group->file, text, sizeof(text) - 1, 0);

	text[len > 0 ? len : 0] = '\0';
	if (!quota_parse(text, &look->counts))
		return false;
	look->time_ns = now_ns;
	look->until_ns = clock_now_ns(CLOCK_MONOTONIC);
	group->count++;
	return true;
}

static struct group *find_group(const char *folder)
{
	for (unsigned int i = 0; i < quota->group_count; i++) {
		if (!strcmp(quota->groups[i].folder, folder))
			return &quota->groups[i];
	}
	return NULL;
}

static void follow_group(const char *folder)
{
	struct group *group = &quota->groups[quota->group_count];
	char path[FOLDER_MAX + 16];

	if (quota->group_count >= GROUPS_MAX || find_group(folder))
		return;
	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	group->file = open(path, O_RDONLY | O_CLOEXEC);
	if (group->file < 0)
		return;
	snprintf(group->folder, sizeof(group->folder), "%s", folder);
	group->count = 0;
	if (look_at(group, 0))
		quota->group_count++;
	else
		close(group->file);
}

/* Finds the mount point of the controller. In version 1 it is mounted alone or with others, as in
 * /proc/PID/cgroup; "": version 2. */
static bool find_mount(const char *controllers, char *folder, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	bool found = false;

	while (mounts && !found && (mount = getmntent(mounts))) {
		found = *controllers ? !strcmp(mount->mnt_type, "cgroup") && hasmntopt(mount, "cpu") != NULL
				     : !strcmp(mount->mnt_type, "cgroup2");
		if (found)
			found = snprintf(folder, size, "%s", mount->mnt_dir) < (int)size;
	}
	if (mounts)
		endmntent(mounts);
	return found;
}

static bool has_cpu(const char *controllers)
{
	for (const char *word = controllers; *word; word += strcspn(word, ","), word += *word == ',') {
		if (!strncmp(word, "cpu", 3) && (word[3] == ',' || !word[3]))
			return true;
	}
	return false;
}

/* Parses a line of /proc/PID/cgroup, NUMBER:CONTROLLERS:PATH, and follows the group and its parents. */
static void each_folder(char *line, void (*take)(const char *folder, void *context), void *context)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	char folder[FOLDER_MAX];
	size_t root, len;

	if (!path)
		return;
	controllers++;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if ((*controllers && !has_cpu(controllers)) || !find_mount(controllers, folder, sizeof(folder)))
		return;
	root = strlen(folder);
	len = root +
	      (size_t)snprintf(folder + root, sizeof(folder) - root, "%s", strcmp(path, "/") ? path : "");
	if (len >= sizeof(folder))
		return;
	take(folder, context);
	while (strlen(folder) > root) {
		*strrchr(folder, '/') = '\0';
		take(folder, context);
	}
}

static void each_group(pid_t tid, void (*take)(const char *folder, void *context), void *context)
{
	char path[64], line[LINE_MAX_LEN];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		each_folder(line, take, context);
	if (file)
		fclose(file);
}

static void follow_folder(const char *folder, void *context)
{
	(void)context;
	follow_group(folder);
}

void quota_follow(pid_t tid)
{
	if (!quota)
		quota = memory_get(sizeof(*quota));
	if (!quota || quota->followed_count >= FOLLOWED_MAX)
		return;
	for (unsigned int i = 0; i < quota->followed_count; i++) {
		if (quota->followed[i] == tid)
			return;
	}
	quota->followed[quota->followed_count++] = tid;
	each_group(tid, follow_folder, NULL);
}

void quota_look(int64_t now_ns)
{
	for (unsigned int i = 0; quota && i < quota->group_count; i++)
		look_at(&quota->groups[i], now_ns);
}

bool quota_is_used(void)
{
	for (unsigned int i = 0; quota && i < quota->group_count; i++) {
		const struct group *group = &quota->groups[i];

		if (group->looks[(group->count - 1) % LOOKS].counts.periods > 0)
			return true;
	}
	return false;
}

struct written {
	int64_t from_ns;
	struct json *j;
};

static void write_group(const char *folder, void *context)
{
	const struct written *written = context;
	const struct group *group = find_group(folder);
	const struct look *before;
	unsigned int kept, first = 1;

	if (!group) { /* the thread has moved there, so the group is known from the next look on */
		follow_group(folder);
		return;
	}
	kept = group->count < LOOKS ? group->count : LOOKS;
	while (first < kept && group->looks[(group->count - first) % LOOKS].until_ns > written->from_ns)
		first++;
	before = &group->looks[(group->count - first) % LOOKS];
	for (unsigned int i = first - 1; i > 0; i--) {
		const struct look *look = &group->looks[(group->count - i) % LOOKS];

		if (look->counts.ns <= before->counts.ns)
			continue;
		json_open(written->j, NULL, '{');
		json_str(written->j, "group", folder);
		json_int(written->j, "after_ns", group->looks[(group->count - i - 1) % LOOKS].time_ns);
		json_int(written->j, "until_ns", look->until_ns);
		json_int(written->j, "times", look->counts.times - before->counts.times);
		json_int(written->j, "ns", look->counts.ns - before->counts.ns);
		json_close(written->j, '}');
		before = look;
	}
}

void quota_write(const char *key, pid_t tid, int64_t from_ns, struct json *j)
{
	struct written written = {.from_ns = from_ns, .j = j};

	json_open(j, key, '[');
	if (quota)
		each_group(tid, write_group, &written);
	json_close(j, ']');
}

void quota_close(void)
{
	for (unsigned int i = 0; quota && i < quota->group_count; i++)
		close(quota->groups[i].file);
	quota = NULL;
}
