/* SPDX-License-Identifier: MIT */
/*
 * A signal path: a line from a master to a slave and, where the slave answers, one back. One file a kind; a
 * kind is how an edge is made, waited for, and what the path itself says of it.
 */
#ifndef RTGAUGE_PATH_H
#define RTGAUGE_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../kmod/rtgauge_kmod.h"
#include "base/options.h"
#include "harness/cpus.h"
#include "signal/gpio_spec.h"

enum path_role { PATH_MASTER, PATH_SLAVE, PATH_BOTH };

extern const char *const path_role_names[];

/* Of gpio, what the kernel calls their lines, the lines' interrupts and the interrupts' threads. */
#define PATH_MASTER_NAME "rtgauge-master"
#define PATH_SLAVE_NAME "rtgauge-slave"

#define EDGE_UNNUMBERED INT64_C(-1)
#define EDGE_OVER INT64_C(-2) /* no edge: the other end says that it is done */

struct edge {
	int64_t number;	    /* as the other end gave it; EDGE_UNNUMBERED: the path carries none */
	int64_t time_ns;    /* the kernel's time stamp (CLOCK_MONOTONIC); 0: the path has none */
	unsigned int count; /* edges that were taken at once, 1 or more; the others are of no use */
};

struct path_end;

struct path_kind {
	const char *name; /* what --path begins with */
	bool numbered;	  /* edges carry their numbers */
	bool stamped;	  /* edges have the kernel's time stamp */
	bool on_cokernel; /* a measuring thread stays with the co-kernel on it */

	/*
	 * Opens what the role needs of the path: ends[PATH_MASTER], ends[PATH_SLAVE]. rest: of --path behind
	 * the kind's name and colon. both_ways: the slave answers. 0, or the exit status after an `error`
	 * line.
	 */
	int (*open)(const char *rest, enum path_role role, bool both_ways, struct path_end *ends);

	/*
	 * Of a co-kernel, in the process that uses this end, the slave's first: what cannot be done before.
	 * NULL: nothing. 0 or an errno.
	 */
	int (*join)(struct path_end *end);

	/* Makes an edge. 0 or an errno. */
	int (*send)(struct path_end *end, int64_t number);

	/* Waits for an edge and takes it. 0 or an errno; EINTR: a signal came. */
	int (*receive)(struct path_end *end, struct edge *edge);

	/* Of a co-kernel: the same until a time of CLOCK_MONOTONIC. ETIMEDOUT: none came. */
	int (*receive_until)(struct path_end *end, struct edge *edge, int64_t until_ns);
};

struct path_end {
	const struct path_kind *kind;
	bool slave;
	int in, out;		      /* descriptors; in becomes readable with an edge */
	bool level;		      /* gpio: what the next edge leaves */
	struct sockaddr_storage peer; /* udp: whom the slave answers, who sent the last edge */
	socklen_t peer_length;
	uint32_t line_number; /* gpio: of the last edge that was taken */
};

/* The end of a path that a task in the kernel holds: what it requests of the lines. */
struct path_kernel_end {
	enum path_role task;
	struct rtgauge_line out, in; /* without a label: none */
};

/* Opens --path. 0, or the exit status after an `error` line. */
int path_open(const char *text, enum path_role role, bool both_ways, struct path_end *ends);

/*
 * Opens it for a task in the kernel, whose lines are only looked up, for its module to request them; what
 * remains of the role is opened. gpio:..., wire, and for one that is only time-stamped none. 0, or the exit
 * status after an `error` line.
 */
int path_open_for_kernel(const char *text, enum path_role role, bool both_ways,
			 struct path_kernel_end *kernel, struct path_end *ends);

/* The end joins the co-kernel. 0 or an errno. */
int path_join(struct path_end *end);

/* In the engine itself, when a slave beside it is ready: it joins the co-kernel, and so does its end. 0, or
 * the exit status after an `error` line. */
int roles_join(struct path_end *ends);

/* Of a path within one engine: both roles are this engine's and nothing more is said of it. 0, or the exit
 * status after an `error` line. */
int loop_check(const char *rest, enum path_role role, const char *name);

/* The `error` line: errno says why there is no such thing. */
int loop_refused(const char *name);

/* What each line of --path is: of which end, and whether that end watches it. */
struct line_use {
	enum path_role end;
	bool input;
};

/* How many lines a role needs, and what they are; and in words. */
unsigned int gpio_uses(enum path_role role, bool both_ways, struct line_use use[GPIO_LINES]);
const char *gpio_wanted_lines(enum path_role role, bool both_ways);

/* The lines of gpio:REST; those of the kernel's task, if there is one, are looked up and not opened. */
int gpio_open_lines(const char *rest, enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends);

/* On Cobalt, the lines of rtdm:REST; those of the kernel's task, if there is one, are only named. */
int rtdm_open_lines(const char *rest, enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends);

extern const struct path_kind path_eventfd, path_pipe, path_socketpair, path_mqueue, path_loop_udp, path_udp,
	path_gpio, path_wire, path_rtdm;

struct role_options {
	const char *path;
	int role;    /* enum path_role */
	int space;   /* enum space, of the task that is measured */
	int context; /* enum rtgauge_context, in the kernel */
	int64_t slave_cpu;
};

/* Constant once harness_run has read it. */
extern struct role_options role_options;

/* Path, role, space and the slave's CPU, for the table of a probe with two roles. */
extern const struct option_entry roles_options_table[];

/* The probe gives its choices. */
extern const struct option_entry roles_option_context[];

/*
 * A role that is alone has the first CPU that was asked for. Of both the master has it, and the slave has
 * --slave-cpu or, where that is negative, one beside it. They are then the measured ones. 0, or the exit
 * status after an `error` line.
 */
int roles_cpus(struct probe_cpus *cpus, int cpu[2]);

#endif
