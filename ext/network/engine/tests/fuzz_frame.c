// SPDX-License-Identifier: MIT
/* Frames from the network. The first byte selects the kind. An answer must carry the nonce of the run. */
#include <stdlib.h>
#include <string.h>

#include "ext/network/engine/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned char nonce[] = {'n', 'o', 'n', 'c', 'e', '-', '1', '2'};
	struct frame_format format = {.ident = 0x4142, .nonce = UINT64_C(0x6e6f6e63652d3132)};
	unsigned char *frame;

	if (!size)
		return 0;
	format.kind = (enum frame_kind)(data[0] % 5);
	format.ip_header = format.kind == FRAME_ICMP && data[0] & 128;
	format.any_ident = data[0] & 64;
	frame = malloc(size); /* of exactly this size, so that a sanitizer sees each byte beyond */
	memcpy(frame, data + 1, --size);
	if ((frame_answer(&format, frame, size) >= 0 || frame_sent(&format, frame, size) >= 0) &&
	    !memmem(frame, size, nonce, sizeof(nonce)))
		abort();
	free(frame);
	return 0;
}
