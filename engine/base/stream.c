// SPDX-License-Identifier: MIT
#include "base/stream.h"

#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/boot_id.h"
#include "base/verbs.h"

static char buffer[65536];

void stream_begin(struct json *j)
{
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	json_start(j, stdout);
}

void stream_hello(struct json *j, const char *probe, const struct option_entry *table)
{
	struct utsname system = {0};
	char boot[BOOT_ID_SIZE];

	uname(&system);
	boot_id_read(boot);
	json_open(j, NULL, '{');
	json_str(j, "type", "hello");
	json_int(j, "version", STREAM_VERSION);
	json_str(j, "engine", ENGINE_VERSION);
	json_str(j, "probe", probe);
	json_int(j, "pid", getpid());
	json_str(j, "boot_id", boot);
	json_str(j, "kernel", system.release);
	json_str(j, "machine", system.machine);
	json_open(j, "capabilities", '[');
	for (const struct verb **verb = verbs; *verb; verb++)
		json_str(j, NULL, (*verb)->name);
	json_close(j, ']');
	options_json(table, j);
}

void stream_mark(struct json *j, const char *name, enum severity severity, int series, const char *format,
		 ...)
{
	static const char *const severities[] = {"note", "doubtful", "invalid"};
	char detail[512];
	va_list args;

	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);

	json_open(j, NULL, '{');
	json_str(j, "type", "mark");
	json_str(j, "name", name);
	json_str(j, "severity", severities[severity]);
	if (series < 0)
		json_null(j, "series");
	else
		json_int(j, "series", series);
	json_str(j, "detail", detail);
	json_close(j, '}');
	json_line(j);
}

void stream_result(struct json *j, const char *name)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "result");
	json_str(j, "name", name);
	json_open(j, "labels", '{');
}

void stream_result_end(struct json *j)
{
	json_close(j, '}');
	json_close(j, '}');
	json_line(j);
}

void stream_end(struct json *j, const char *reason, int status)
{
	json_open(j, NULL, '{');
	json_str(j, "type", "end");
	json_str(j, "reason", reason);
	json_int(j, "status", status);
	json_close(j, '}');
	json_line(j);
}

bool stream_written(void)
{
	return !fflush(stdout) && !ferror(stdout);
}
