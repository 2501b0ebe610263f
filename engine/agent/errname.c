// SPDX-License-Identifier: MIT
#include "agent/errname.h"

#include <errno.h>
#include <stdio.h>

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
		NAME(EILSEQ);
		NAME(EINTR);
		NAME(EINVAL);
		NAME(EIO);
		NAME(EISDIR);
		NAME(ELOOP);
		NAME(EMFILE);
		NAME(ENAMETOOLONG);
		NAME(ENFILE);
		NAME(ENODATA);
		NAME(ENODEV);
		NAME(ENOENT);
		NAME(ENOEXEC);
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
