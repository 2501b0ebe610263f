// SPDX-License-Identifier: MIT
#include "ext/tire/engine/state_file.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

static uint64_t bits(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return htole64(word);
}

bool tire_state_write(const char *path, const struct tire_plan *plan, int64_t steps)
{
	uint64_t head[3] = {0, htole64((uint64_t)plan->model->nodes), htole64((uint64_t)steps)};
	FILE *file = fopen(path, "we");

	if (!file)
		return false;
	memcpy(head, "rtgtire\x01", sizeof(head[0]));
	fwrite(head, sizeof(head), 1, file);
	for (int64_t i = 0; i < plan->model->nodes; i++) {
		struct tire_state s = plan->solver->state(plan->tire, i);
		uint64_t words[4] = {bits(s.x), bits(s.y), bits(s.vx), bits(s.vy)};

		fwrite(words, sizeof(words), 1, file);
	}
	if (ferror(file)) {
		fclose(file);
		return false;
	}
	return !fclose(file);
}
