// SPDX-License-Identifier: MIT
/* Moves the tasks of a control group into a new group below it. `restore` removes the new group, and moves
 * the tasks back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cgroup.h"
#include "agent/file.h"
#include "agent/journal.h"
#include "agent/options.h"
#include "agent/setting_group.h"
#include "agent/text.h"
#include "base/error.h"
#include "base/json.h"
#include "base/verbs.h"

/* Returns whether the journal knows this group as one that the run made. */
static bool is_made_by(const char *dir, const char *run, const char *group)
{
	struct journal journal;
	bool found = false;

	if (journal_open(&journal, dir, false))
		return false;
	for (size_t i = 0; i < journal.count; i++) {
		const struct entry *entry = &journal.entries[i];
		const char *made = setting_group_dir(entry->path);

		found |= entry->state != STATE_OVER && made && !strcmp(made, group) &&
			 !strcmp(entry->run, run) && !strcmp(entry->old, "absent");
	}
	journal_close(&journal);
	return found;
}

static void print_refusal(pid_t task, int error, struct json *j)
{
	char path[64];
	struct bytes name;

	json_open(j, NULL, '{');
	json_int(j, "task", task);
	snprintf(path, sizeof(path), "/proc/%lld/comm", (long long)task);
	if (file_read(path, 64, &name)) {
		json_null(j, "name");
	} else {
		json_strn(j, "name", name.data, strcspn(name.data, "\n"));
		free(name.data);
	}
	json_str(j, "error", errname(error));
	json_close(j, '}');
}

static int gather(const char *group)
{
	char *parent = strndup(group, (size_t)(strrchr(group, '/') - group));
	struct cgroup_moved moved;
	int error = parent ? cgroup_move_all(parent, group, &moved) : ENOMEM;
	struct json j;

	free(parent);
	if (error)
		return error_line(STATUS_CANNOT_MEASURE, "internal", "cannot move tasks into %.200s: %s",
				  group, errname(error));
	json_start(&j, stdout);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "gather");
	json_str(&j, "group", group);
	json_uint(&j, "moved", moved.moved);
	json_uint(&j, "refused", moved.refused);
	json_open(&j, "refusals", '[');
	for (size_t i = 0; i < moved.refused && i < sizeof(moved.last_errors) / sizeof(moved.last_errors[0]);
	     i++)
		print_refusal(moved.last_refused[i], moved.last_errors[i], &j);
	json_close(&j, ']');
	json_close(&j, '}');
	json_line(&j);
	return 0;
}

static int verb_gather(int argc, char **argv)
{
	const char *run = NULL, *journal = NULL;
	const struct option_entry table[] = {{.shared = agent_option_run, .value = &run},
					     {.shared = agent_option_journal, .value = &journal},
					     {0}};
	char *dir;
	bool dashes, ours;
	int rest, status = options_parse_operands(table, " [--] GROUP", argc, argv, &rest, &dashes);

	if (status)
		return status < 0 ? STATUS_OK : status;
	status = agent_check_run(run);
	if (status)
		return status;
	if (argc - rest != 1 || argv[rest][0] != '/' || !strchr(argv[rest] + 1, '/'))
		return usage_error("gather needs one control group: gather --run ID -- /sys/fs/cgroup/...");
	status = agent_find_journal(journal, &dir);
	if (status)
		return status;
	ours = is_made_by(dir, run, argv[rest]);
	free(dir);
	if (!ours)
		return usage_error(
			"%.200s is not a group that run %s made with `set`, so its tasks could not be put back",
			argv[rest], run);
	return gather(argv[rest]);
}

AGENT_VERB("gather", verb_gather, "move the tasks of a control group into a new group inside it")
