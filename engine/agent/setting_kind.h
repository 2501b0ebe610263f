/* SPDX-License-Identifier: MIT */
/* The kinds of settings. Most are files; the other kinds have their own names (docs/formats/agent.md). */
#ifndef RTGAUGE_SETTING_KIND_H
#define RTGAUGE_SETTING_KIND_H

#include <stdbool.h>

/* agent/agent_error.h has the errors. To restore a setting, write the value that was read before. */
struct setting_kind {
	bool (*is)(const char *name); /* whether a setting of this kind has this name */
	/* Reads the value that restores the present state; *value is malloc'ed, NULL after an error. */
	int (*read)(const char *name, char **value);
	int (*write)(const char *name, const char *value);
};

/* A file on a disk. Its value is every byte. */
extern const struct setting_kind setting_disk_file;

/* A kernel file. Its value is its only line without the newline, or a selector's word in brackets ("always
 * [madvise] never"). */
extern const struct setting_kind setting_kernel_file;

/* The clock of Xenomai's Cobalt ("gravity: irq=0 kernel=2000 user=2000", and more lines). Its value is the
 * gravity as it is written, "0i 2000k 2000u". */
extern const struct setting_kind setting_gravity;

/*
 * `thread:TID:START:policy` ("fifo 50", "other"), `thread:TID:START:affinity` ("0-3"), and for the first
 * thread of a process `thread:PID:START:state` ("running", "stopped": the whole process). START is the
 * thread's start time, so a later thread with the same number is left alone. ESRCH: the thread is gone;
 * ENOTSUP: a deadline policy, which these words cannot express.
 */
extern const struct setting_kind setting_thread;

/*
 * Control groups: `group:DIR` is "present" or "absent"; `controller:NAME:DIR` is "on" or "off" (whether the
 * groups below DIR have it, version 2). EINVAL: not a file system of control groups. The tasks of a group
 * that becomes absent move to its parent.
 */
extern const struct setting_kind setting_group;

/*
 * `trace:NAME` is an instance of tracefs, "present" or "absent". `osnoise:FILE` is a setting of the
 * osnoise and timerlat tracers, which all instances share. `osnoise:workload` says whether their own
 * threads run, "on" or "off".
 */
extern const struct setting_kind setting_trace;

/*
 * `point:EVENT` is an event `rtgauge/EVENT` at an instruction of a program (uprobe): "absent" or
 * "FILE:0xOFFSET". ENOTSUP: the kernel has no such events.
 */
extern const struct setting_kind setting_point;

/*
 * `module:FILE` or `module:FILE PARAMETERS` is a kernel module, "present" or "absent". FILE is its .ko,
 * perhaps compressed (.ko.xz, .ko.gz, .ko.zst); only its name is used to find and remove the module. Errors
 * are those of finit_module(2) and delete_module(2).
 */
extern const struct setting_kind setting_module;

/*
 * `ethtool:INTERFACE:KEY` of a network interface: `rx-usecs`, `rx-frames`, `tx-usecs` and `tx-frames` are
 * numbers, `adaptive-rx`, `adaptive-tx` and `eee` are "on" or "off". ENODEV: there is no such interface;
 * ENOTSUP: its driver has no such setting.
 */
extern const struct setting_kind setting_ethtool;

/*
 * `timer:NAME.timer` is a timer of systemd, "running" or "stopped". ENOENT: there is no such unit; ENOTSUP:
 * the machine was not booted with systemd.
 */
extern const struct setting_kind setting_timer;

/*
 * `resctrl:RESOURCE` is what the default group of resctrl has of L2, L3 or MB, such as "0=fff;1=ff0", the way
 * `schemata` has it. `resctrl:RESOURCE:GROUP` is a group: "absent", or its CPUs ("-": none) and its share of
 * the resource ("2-3 0=00f;1=00f"). ENODEV: resctrl is not mounted; ENOTSUP: it has no such resource.
 */
extern const struct setting_kind setting_resctrl;

#endif
