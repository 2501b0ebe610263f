/* SPDX-License-Identifier: MIT */
/* Functions for settings that are files. */
#ifndef RTGAUGE_SETTING_FILE_H
#define RTGAUGE_SETTING_FILE_H

/* Reads a text file, malloc'ed. Returns 0 or an errno: EFBIG if it is too long, EILSEQ if it is not text. */
int setting_file_text(const char *path, char **text);

/* Returns the word in brackets, square or round (malloc'ed), if the text is a selector, else NULL. */
char *setting_selected(const char *text);

#endif
