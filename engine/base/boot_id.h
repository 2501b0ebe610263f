/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_BOOT_ID_H
#define RTGAUGE_BOOT_ID_H

#define BOOT_ID_SIZE 37

/* Returns the kernel's random id of this boot; "unknown" if it cannot be read. */
void boot_id_read(char id[BOOT_ID_SIZE]);

#endif
