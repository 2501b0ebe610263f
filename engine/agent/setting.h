/* SPDX-License-Identifier: MIT */
/* One setting: how it is read, written and compared. Most are files that the kernel shows; threads
 * (setting_thread.h) and control groups (setting_group.h) have names of their own. */
#ifndef RTGAUGE_SETTING_H
#define RTGAUGE_SETTING_H

#include <stdbool.h>
#include <stddef.h>

#define SETTING_MAX_LEN 4096

/* A path, or the name of a thread's or a group's setting. */
bool setting_is_name(const char *path);

/* Below /proc, /sys, /dev or /run: gone after a reboot. */
bool setting_is_volatile(const char *path);

/*
 * Reads what has to be written to bring the present value back: of a selector ("always [madvise] never") the
 * word in brackets, of the clock of Xenomai's Cobalt its gravity ("0i 2000k 2000u"), of another kernel file
 * the text without its last newline, of a file on a disk every byte. *value is malloc'ed. Returns NULL, or
 * the name of an error: that of an errno, "multi-line" for a kernel file of several lines, which cannot be
 * written back.
 */
const char *setting_read(const char *path, bool is_volatile, char **value);

/* Writes the whole value with one write(2), a newline after it in kernel files. Returns NULL or the name of
 * an errno. */
const char *setting_write(const char *path, bool is_volatile, const char *value);

/* The same value, though perhaps written another way: spaces, "0,1" and "0-1", "3" and "00000003", "1" and
 * "Y". */
bool setting_same(const char *a, const char *b);

/* The word in brackets where the text is a selector, malloc'ed; else NULL. */
char *setting_selected(const char *text);

#endif
