// SPDX-License-Identifier: MIT
#include "harness/no_memory.h"

#include <errno.h>

#include "base/error.h"
#include "harness/options.h"
#include "rt/memory.h"

bool harness_memory_limited(void)
{
	return harness_options.memory_lock && memory_limited();
}

int harness_no_memory(void)
{
	char text[512];

	if (harness_memory_limited())
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(ENOMEM, text, sizeof(text)));
	return error_line(STATUS_CANNOT_MEASURE, "internal",
			  "not enough memory for the samples of these CPUs; measure fewer");
}
