/* SPDX-License-Identifier: MIT */
/* cmocka wants these before it. */
#ifndef RTGAUGE_CM_H
#define RTGAUGE_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
