// SPDX-License-Identifier: MIT
#include "agent/options.h"

#include "agent/journal.h"
#include "agent/text.h"
#include "base/error.h"

const struct option_entry agent_option_run[] = {
	{.name = "run", .kind = OPTION_TEXT, .help = "ID of the run: letters, digits and ._-:@+"},
	{0},
};

const struct option_entry agent_option_journal[] = {
	{.name = "journal", .kind = OPTION_TEXT, .help = "folder of the journal", .may_be_empty = true},
	{0},
};

int agent_check_run(const char *run)
{
	return run && text_is_id(run) ? 0
				      : usage_error("give --run ID: letters, digits and ._-:@+, at most 128");
}

int agent_find_journal(const char *given, char **folder)
{
	*folder = journal_dir(given);
	return *folder ? 0
		       : usage_error("the default folder for the journal is unknown; give one with "
				     "--journal DIR");
}
