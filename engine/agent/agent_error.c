// SPDX-License-Identifier: MIT
#include "agent/agent_error.h"

#include <stddef.h>

#include "base/error.h"

const char *agent_errname(int error)
{
	switch (error) {
	case 0:
		return NULL;
	case AGENT_ALIVE:
		return "alive";
	case AGENT_DIFFERS:
		return "differs";
	case AGENT_IN_USE:
		return "in-use";
	case AGENT_MULTI_LINE:
		return "multi-line";
	default:
		return errname(error);
	}
}
