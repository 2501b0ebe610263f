/* SPDX-License-Identifier: MIT */
/*
 * The path `wire`: two or four joined lines of the GPIO chip of the kernel module rtgauge_wire. Probes use
 * them like any GPIO lines. In the kernel, the module takes its own time stamps of the edges, when an
 * output changes. These are the reference for the probes' own figures.
 */
#ifndef RTGAUGE_WIRE_H
#define RTGAUGE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "ext/signal/engine/path/path.h"
#include "kmod/device.h"

/* The chip's label and lines. The master's output is joined to the slave's input, and the slave's output
   to the master's input. */
#define WIRE_LABEL "rtgauge_wire"
enum wire_line { WIRE_MASTER_OUT, WIRE_MASTER_IN, WIRE_SLAVE_OUT, WIRE_SLAVE_IN, WIRE_LINES };

/* Opens the module's device and joins the lines. Returns 0, or the exit status after an `error` line. */
int wire_open(bool both_ways);

/* Returns whether the path is the wire. */
bool wire_is_open(void);

/* Opens a role's lines on the wire, like gpio_open_lines. Returns 0, or the exit status after an `error`
 * line. */
int wire_open_lines(enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends);

/* Start and stop the recording. Return 0, or the exit status after an `error` line. */
int wire_begin(void);
void wire_end(void);

/* Takes the edges that were recorded since the last call. */
void wire_look(void);

/* After this time, an edge has been recorded or never will be. */
#define WIRE_SETTLE_NS INT64_C(200000000)

/*
 * Returns when an output of the wire first changed in the range after one time and up to another; 0: it
 * did not, or this is unknown. The line's earlier edges are forgotten, so calls for a line must come in
 * time order.
 */
int64_t wire_edge(enum wire_line output, int64_t after_ns, int64_t until_ns);

/* Writes the result `wire`: how many edges or responses were compared with its time stamps, and how many
 * were not. Writes a mark if some were not, or if the wire could not record all. */
void wire_conclude(int64_t compared, int64_t not_compared, const char *what, struct json *j);

#endif
