/* SPDX-License-Identifier: MIT */
/*
 * A signal path: a line from a master to a slave and, if the slave answers, a line back. Each kind has one
 * file, which makes an edge, waits for an edge, and reports on the path.
 */
#ifndef RTGAUGE_PATH_H
#define RTGAUGE_PATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "../kmod/rtgauge_kmod.h"
#include "base/options.h"
#include "ext/signal/engine/path/gpio_spec.h"
#include "harness/cpus.h"
#include "harness/harness.h"

enum path_role { PATH_MASTER, PATH_SLAVE, PATH_BOTH };

extern const char *const path_role_names[];

/* For gpio: the kernel's name of the lines, of their interrupts, and of the interrupts' threads. */
#define PATH_MASTER_NAME "rtgauge-master"
#define PATH_SLAVE_NAME "rtgauge-slave"

#define EDGE_UNNUMBERED INT64_C(-1)
#define EDGE_OVER INT64_C(-2) /* not an edge: the other end has said that it is done */

struct edge {
	int64_t number;	    /* as the other end sent it; EDGE_UNNUMBERED: the path carries no numbers */
	int64_t time_ns;    /* the kernel's time stamp (CLOCK_MONOTONIC); 0: the path has none */
	unsigned int count; /* edges that were taken together, 1 or more; only the last one counts */
};

struct path_end;

struct path_kind {
	const char *name; /* the beginning of --path */
	bool numbered;	  /* edges carry their numbers */
	bool stamped;	  /* edges have the kernel's time stamp */
	bool on_cokernel; /* whether a measuring thread on this path stays in the co-kernel */

	/*
	 * Opens the ends that the role needs: ends[PATH_MASTER], ends[PATH_SLAVE]. rest: --path after the
	 * kind's name and colon. both_ways: whether the slave answers. Returns 0, or the exit status after
	 * an `error` line.
	 */
	int (*open)(const char *rest, enum path_role role, bool both_ways, struct path_end *ends);

	/*
	 * On a co-kernel, called in the process that uses this end, the slave's first: does the steps that
	 * cannot be done before. NULL: there are none. Returns 0 or an errno.
	 */
	int (*join)(struct path_end *end);

	/* Makes an edge. Returns 0 or an errno. */
	int (*send)(struct path_end *end, int64_t number);

	/* Waits for an edge and takes it. Returns 0 or an errno; EINTR: a signal came. */
	int (*receive)(struct path_end *end, struct edge *edge);

	/* On a co-kernel: the same, until a time on CLOCK_MONOTONIC. ETIMEDOUT: no edge came. */
	int (*receive_until)(struct path_end *end, struct edge *edge, int64_t until_ns);
};

struct path_end {
	const struct path_kind *kind;
	bool slave;
	int in, out;		      /* descriptors; `in` becomes readable when an edge comes */
	bool level;		      /* gpio: the level after the next edge */
	struct sockaddr_storage peer; /* udp: where the slave answers; who sent the last edge */
	socklen_t peer_length;
	uint32_t line_number; /* gpio: number of the last edge that was taken */
};

/* The end of a path that a task in the kernel uses: the lines that it requests. */
struct path_kernel_end {
	enum path_role task;
	struct rtgauge_line out, in; /* without a label, there is no line */
};

/* Opens --path. Returns 0, or the exit status after an `error` line. */
int path_open(const char *text, enum path_role role, bool both_ways, struct path_end *ends);

/*
 * Opens --path for a task in the kernel: looks up the lines that the task's module will request, and opens
 * the rest of the role. The path is gpio:... or wire, or none for a task that only takes time stamps.
 * Returns 0, or the exit status after an `error` line.
 */
int path_open_for_kernel(const char *text, enum path_role role, bool both_ways,
			 struct path_kernel_end *kernel, struct path_end *ends);

/* The end joins the co-kernel. Returns 0 or an errno. */
int path_join(struct path_end *end);

/* Called in the engine itself when a second slave process is ready: the engine and its end join the
 * co-kernel. Returns 0, or the exit status after an `error` line. */
int roles_join(struct path_end *ends);

/* Checks a path within one engine. The engine must have both roles, and no text may follow. Returns 0, or
 * the exit status after an `error` line. */
int loop_check(const char *rest, enum path_role role, const char *name);

/* Writes the `error` line. errno says why the path does not exist. */
int loop_refused(const char *name);

/* For each line of --path: its end, and whether this end watches it. */
struct line_use {
	enum path_role end;
	bool input;
};

/* Returns how many lines a role needs, and which; also in words. */
unsigned int gpio_uses(enum path_role role, bool both_ways, struct line_use use[GPIO_LINES]);
const char *gpio_wanted_lines(enum path_role role, bool both_ways);

/* Opens the lines of gpio:REST. The lines of a task in the kernel are looked up but not opened. */
int gpio_open_lines(const char *rest, enum path_role role, bool both_ways, struct path_kernel_end *kernel,
		    struct path_end *ends);

/* On Cobalt, opens the lines of rtdm:REST. The lines of a task in the kernel are only named. */
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

/* Constant after harness_run has read it. */
extern struct role_options role_options;

/* Options for path, role, space and the slave's CPU, for the table of a probe with two roles. */
extern const struct option_entry roles_options_table[];

/* The probe sets its choices. */
extern const struct option_entry roles_option_context[];

/*
 * Chooses CPUs. A role that is alone gets the first requested CPU. With both roles, the master gets it,
 * and the slave gets --slave-cpu or, if that is negative, a CPU near the master's. These are then the
 * measured CPUs. Returns 0, or the exit status after an `error` line.
 */
int roles_cpus(struct probe_cpus *cpus, int cpu[2]);

/* Runs the whole life of a probe, like harness_run, with one thread and room for a second process. */
int roles_run(struct harness *h, int argc, char **argv);

/* Ends a role that is alone if its time is over, or its count is reached in this series. over: whether the
 * other end has said that it is done. The series must have reached_ns. */
void roles_end_alone(struct harness *h, const struct series *s, int64_t end_ns, bool over);

/* Marks that the other end sent nothing. what: what was expected. */
void roles_mark_no_stimulus(const char *what, struct json *j);

/* Marks that the second process, which has this role, ended too early, if it did. */
void roles_mark_died(const struct harness *h, const char *role, struct json *j);

#endif
