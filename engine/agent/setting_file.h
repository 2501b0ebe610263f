/* SPDX-License-Identifier: MIT */
/* Functions that settings in files share. */
#ifndef RTGAUGE_SETTING_FILE_H
#define RTGAUGE_SETTING_FILE_H

/* Reads a text file, malloc'ed. Returns 0 or an errno: EFBIG if it is too long, EILSEQ if it is not text. */
int setting_file_text(const char *path, char **text);

/* Returns the word in brackets if the text is a selector, malloc'ed; else NULL. */
char *setting_selected(const char *text);

#endif
