// SPDX-License-Identifier: MIT
/* A session's lines: a window in which the fuzzer changes something, and lines of its own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ext/recorder/engine/fold.h"

#define WINDOW                                                                                               \
	"{\"type\":\"window\",\"series\":0,\"phase\":\"measure\",\"start_ns\":1,\"end_ns\":2,\"count\":3,"   \
	"\"missed\":1,\"min_ns\":-3,\"max_ns\":5,\"sum_ns\":7,\"m2_ns2\":1,\"bins\":\"HCQE\","               \
	"\"missed_bins\":\"OC\"}\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t head = sizeof(WINDOW) - 1, len = 2 * head, at, changed;
	char *text, *folded, *again;

	if (size < 2)
		return 0;
	at = head + data[0] % head;
	changed = data[1] < len - at ? data[1] : len - at;
	changed = changed < size - 2 ? changed : size - 2;
	text = malloc(len + size - 1);
	memcpy(text, WINDOW WINDOW, len);
	memcpy(text + at, data + 2, changed);
	memcpy(text + len, data + 2 + changed, size - 2 - changed);
	len += size - 2 - changed;
	text[len] = '\0';
	folded = fold_session(text, &len);
	free(text);
	if (!folded || !memmem(folded, len, "\"folded\"", 8)) /* the first window is whole */
		abort();
	again = malloc(len + 1);
	memcpy(again, folded, len);
	again[len] = '\0';
	free(folded);
	free(fold_session(again, &len));
	free(again);
	return 0;
}
