// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static void begin(struct json *j, const char *code, const char *format, va_list args)
{
	char message[600];

	vsnprintf(message, sizeof(message), format, args);
	json_start(j, stdout);
	json_open(j, NULL, '{');
	json_str(j, "type", "error");
	json_str(j, "code", code);
	json_str(j, "message", message);
	json_open(j, "detail", '{');
}

int error_end(struct json *j, int status)
{
	json_close(j, '}');
	json_int(j, "status", status);
	json_close(j, '}');
	json_line(j);
	return status;
}

int error_line(int status, const char *code, const char *format, ...)
{
	struct json j;
	va_list args;

	va_start(args, format);
	begin(&j, code, format, args);
	va_end(args);
	return error_end(&j, status);
}

void error_begin(struct json *j, const char *code, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	begin(j, code, format, args);
	va_end(args);
	if (error)
		json_str(j, "errno", errname(error));
}

int error_lacks(int status, const char *code, const char *what, const char *remedy, const char *format, ...)
{
	struct json j;
	va_list args;

	va_start(args, format);
	begin(&j, code, format, args);
	va_end(args);
	json_str(&j, "what", what);
	json_str(&j, "remedy", remedy);
	return error_end(&j, status);
}

#define NAME(e)                                                                                              \
	case e:                                                                                              \
		return #e

const char *errname(int error)
{
	static char numbers[256][16];
	char *number = numbers[error & 0xff];

	switch (error) {
		NAME(E2BIG);
		NAME(EACCES);
		NAME(EADDRINUSE);
		NAME(EAGAIN);
		NAME(EBADF);
		NAME(EBUSY);
		NAME(EEXIST);
		NAME(EFAULT);
		NAME(EFBIG);
		NAME(EHOSTUNREACH);
		NAME(EILSEQ);
		NAME(EINTR);
		NAME(EINVAL);
		NAME(EIO);
		NAME(EISDIR);
		NAME(EKEYREJECTED);
		NAME(ELOOP);
		NAME(EMFILE);
		NAME(ENAMETOOLONG);
		NAME(ENETUNREACH);
		NAME(ENFILE);
		NAME(ENODATA);
		NAME(ENODEV);
		NAME(ENOENT);
		NAME(ENOEXEC);
		NAME(ENOKEY);
		NAME(ENOMEM);
		NAME(ENOSPC);
		NAME(ENOSYS);
		NAME(ENOTDIR);
		NAME(ENOTSUP);
		NAME(ENXIO);
		NAME(EOVERFLOW);
		NAME(EPERM);
		NAME(EPIPE);
		NAME(ERANGE);
		NAME(EROFS);
		NAME(ESRCH);
		NAME(ETIMEDOUT);
		NAME(ETXTBSY);
		NAME(EDQUOT);
	default:
		snprintf(number, sizeof(numbers[0]), "E%d", error);
		return number;
	}
}
