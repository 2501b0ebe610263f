/* SPDX-License-Identifier: MIT */
/* What settings that are files share. */
#ifndef RTGAUGE_SETTING_FILE_H
#define RTGAUGE_SETTING_FILE_H

/* The text of a file that holds one, malloc'ed. 0 or an errno: EFBIG and EILSEQ if it is too long or is no
 * text. */
int setting_file_text(const char *path, char **text);

/* The word in brackets where the text is a selector, malloc'ed; else NULL. */
char *setting_selected(const char *text);

#endif
