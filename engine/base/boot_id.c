// SPDX-License-Identifier: MIT
#include "base/boot_id.h"

#include <stdio.h>
#include <string.h>

void boot_id_read(char id[BOOT_ID_SIZE])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

	/* 36 bytes, hexadecimal digits and dashes. */
	if (!file || !fgets(id, BOOT_ID_SIZE, file) || strspn(id, "0123456789abcdef-") != BOOT_ID_SIZE - 1)
		strcpy(id, "unknown");
	if (file)
		fclose(file);
}
