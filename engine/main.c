// SPDX-License-Identifier: MIT
/* Selects the verb. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/verbs.h"
#include "rt/runtime.h"

static void usage(FILE *out)
{
	fputs("usage: rtgauge-engine VERB [OPTIONS]   (VERB --help: its options)\n", out);
	for (const struct verb **verb = verbs; *verb; verb++)
		fprintf(out, "  %-10s %s\n", (*verb)->name, (*verb)->help);
	fputs("  version    print the version\n", out);
}

/*
 * Opens closed standard streams. Otherwise the next file would get a stream's number, and output would go
 * into the file. Input is then at its end, and output fails.
 */
static void fill_standard_streams(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", O_RDONLY);
	}
}

int main(int argc, char **argv)
{
	fill_standard_streams();
	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help")) {
		usage(stdout);
		return STATUS_OK;
	}
	if (!strcmp(argv[1], "version") || !strcmp(argv[1], "--version")) {
		puts("rtgauge-engine " ENGINE_VERSION);
		return STATUS_OK;
	}
	for (const struct verb **verb = verbs; *verb; verb++) {
		int status;

		if (strcmp(argv[1], (*verb)->name) != 0)
			continue;
		status = runtime_begin(*verb);
		return status ? status : (*verb)->run(argc - 1, argv + 1);
	}
	return usage_error("unknown verb '%.100s'; see --help", argv[1]);
}
