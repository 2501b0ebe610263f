/* SPDX-License-Identifier: MIT */
#ifndef RTGAUGE_SETTING_GROUP_H
#define RTGAUGE_SETTING_GROUP_H

/* Returns the folder of the setting `group:DIR`, or NULL. */
const char *setting_group_dir(const char *name);

#endif
