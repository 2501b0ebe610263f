// SPDX-License-Identifier: MIT
#include "agent/process_tree.h"
#include "base/options.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/process.h"

static size_t read_all(struct process **all)
{
	DIR *proc = opendir("/proc");
	size_t count = 0, room = 0;
	struct dirent *name;

	*all = NULL;
	while (proc && (name = readdir(proc))) {
		int64_t pid;

		if (!options_int(name->d_name, &pid) || pid <= 0)
			continue;
		if (count == room) {
			struct process *more = realloc(*all, (room + 256) * sizeof(**all));

			if (!more)
				break;
			*all = more;
			room += 256;
		}
		if (process_read((pid_t)pid, &(*all)[count]))
			count++;
	}
	if (proc)
		closedir(proc);
	return count;
}

size_t process_tree_list(pid_t root, pid_t **pids)
{
	struct process *all;
	size_t count = read_all(&all), found = 0, living = 0;
	bool more = true;

	*pids = malloc((count + 1) * sizeof(**pids));
	/* Moves descendants to the front of the array, until no parent among them has another child. */
	while (*pids && more) {
		more = false;
		for (size_t i = found; i < count; i++) {
			bool is_ours = all[i].parent == root;

			for (size_t k = 0; k < found && !is_ours; k++)
				is_ours = all[i].parent == all[k].pid;
			if (is_ours) {
				struct process ours = all[i];

				all[i] = all[found];
				all[found++] = ours;
				more = true;
			}
		}
	}
	for (size_t i = 0; i < found; i++) {
		if (all[i].state != 'Z' && all[i].state != 'X')
			(*pids)[living++] = all[i].pid;
	}
	free(all);
	return living;
}

size_t process_tree_signal(int signal)
{
	pid_t *pids;
	size_t count = process_tree_list(getpid(), &pids);

	for (size_t i = 0; i < count; i++) {
		kill(pids[i], signal);
		/* A stopped process handles no other signal. */
		if (signal != SIGKILL)
			kill(pids[i], SIGCONT);
	}
	free(pids);
	return count;
}
