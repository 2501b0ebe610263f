// SPDX-License-Identifier: MIT
#include "frame/no_memory.h"

#include <errno.h>

#include "base/error.h"
#include "frame/options.h"
#include "rt/memory.h"

bool frame_memory_limited(void)
{
	return frame_wanted.memory_lock && memory_limited();
}

int frame_no_memory(void)
{
	char text[512];

	if (frame_memory_limited())
		return error_line(STATUS_CANNOT_MEASURE, "memory-lock", "%s",
				  memory_refusal(ENOMEM, text, sizeof(text)));
	return error_line(STATUS_CANNOT_MEASURE, "internal",
			  "not enough memory for the samples of these CPUs; measure fewer");
}
