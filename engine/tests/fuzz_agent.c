// SPDX-License-Identifier: MIT
/* Other texts from outside: values of settings, /proc/PID/stat, the lock holder's answer. The first byte
 * selects. */
#include <stdlib.h>
#include <string.h>

#include "agent/machine_lock.h"
#include "agent/process.h"
#include "agent/setting.h"
#include "agent/setting_file.h"
#include "agent/text.h"
#include "base/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const char *a, const char *b)
{
	char *word = setting_selected(a);

	if (setting_same(a, b) != setting_same(b, a) || !setting_same(a, a))
		abort();
	if (word && !strstr(a, word))
		abort();
	free(word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;
	struct process process;
	struct holder holder;
	int64_t number;

	if (!size)
		return 0;
	text = malloc(size + 1);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = text[size] = '\0';
	switch (data[0] % 5) {
	case 0: /* two values with a NUL between */
		check_same(text, strlen(text) < size - 1 ? text + strlen(text) + 1 : text);
		break;
	case 1:
		if (process_parse(text, &process) &&
		    (process.pid <= 0 || process.parent < 0 || process.start < 0))
			abort();
		break;
	case 2:
		machine_lock_parse(text, &holder);
		if (*holder.run && !text_is_id(holder.run))
			abort();
		break;
	case 3:
		if (setting_is_name(text) && text[0] != '/' && !setting_is_volatile(text))
			abort();
		break;
	default:
		options_int(text, &number);
	}
	free(text);
	return 0;
}
