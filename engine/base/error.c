// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

int error_line(int status, const char *code, const char *format, ...)
{
	char message[512];
	struct json j;
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);

	json_start(&j, stdout);
	json_open(&j, NULL, '{');
	json_str(&j, "type", "error");
	json_str(&j, "code", code);
	json_str(&j, "message", message);
	json_open(&j, "detail", '{');
	json_close(&j, '}');
	json_int(&j, "status", status);
	json_close(&j, '}');
	json_line(&j);
	return status;
}
