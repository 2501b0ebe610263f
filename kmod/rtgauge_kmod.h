/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * The interface of rtgauge's kernel modules: parameters, samples and results
 * (docs/formats/kmod.md). All times and durations are in ns; times are on CLOCK_MONOTONIC.
 */
#ifndef RTGAUGE_KMOD_H
#define RTGAUGE_KMOD_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The version of rtgauge, also in dkms.conf. */
#define RTGAUGE_KMOD_VERSION "0.1.0"

/* Incremented with every incompatible change. */
#define RTGAUGE_KMOD_ABI 1

#define RTGAUGE_LABEL_SIZE 32
#define RTGAUGE_STAMPS 6
#define RTGAUGE_NO_LINE 0xffff
#define RTGAUGE_ANY_CPU (-1)

/* Every device's answer: its identity, and the layout of its rings. */
struct rtgauge_info {
	__u32 abi;
	__u32 sample_size;
	__u32 rings;	/* one for each possible CPU */
	__u32 capacity; /* number of samples in a ring */
	__u64 map_size; /* size for mmap() */
	char module[32];
};

/* One activation, answer or edge. A time stamp that was not taken is 0. */
struct rtgauge_sample {
	__u64 number; /* from 0; a gap is an activation that was missed or a sample that was lost */
	__s64 time_ns[RTGAUGE_STAMPS];
	__u16 cpu;  /* the CPU that wrote it */
	__u16 line; /* wire: the line that saw the edge */
	__u16 from; /* wire: the line that made it */
	__u16 flags;
};

/* Time stamps of rtgauge_periodic */
#define RTGAUGE_PERIODIC_EXPECTED 0
#define RTGAUGE_PERIODIC_IRQ 1	  /* entry of the timer's handler */
#define RTGAUGE_PERIODIC_THREAD 2 /* the kernel thread runs; 0 in context irq */
#define RTGAUGE_PERIODIC_DONE 3	  /* the line is toggled */

/* Time stamps of rtgauge_response */
#define RTGAUGE_RESPONSE_IRQ 0 /* entry of the top half; 0 if the kernel made a thread of it */
#define RTGAUGE_RESPONSE_THREAD                                                                    \
	1 /* entry of the threaded handler, or the kernel thread runs; 0 in context irq */
#define RTGAUGE_RESPONSE_DONE 2	    /* the answer is made */
#define RTGAUGE_RESPONSE_STIMULUS 3 /* without a line: the interrupt is raised */

/* Time stamps of rtgauge_wire */
#define RTGAUGE_WIRE_OUT 0     /* the output changed */
#define RTGAUGE_WIRE_IN 1      /* the interrupt at the other end; 0: none was raised */
#define RTGAUGE_WIRE_HANDLED 2 /* its hard-irq handlers are done */

/* Flags of a sample */
#define RTGAUGE_SAMPLE_HIGH (1 << 0)   /* the level after the edge */
#define RTGAUGE_SAMPLE_MERGED (1 << 1) /* wire: the previous edge's interrupt was still due */
#define RTGAUGE_SAMPLE_NO_IRQ (1 << 2) /* wire: nobody is waiting for this edge */
#define RTGAUGE_SAMPLE_HARD (1 << 3)   /* response: answered in hard-irq context */

/*
 * A GPIO line: the chip's label as gpioinfo shows it, and the line's number. An empty label
 * means no line.
 */
struct rtgauge_line {
	char chip[RTGAUGE_LABEL_SIZE];
	__u32 offset;
	__u32 flags;
};

#define RTGAUGE_LINE_ACTIVE_LOW (1 << 0)
#define RTGAUGE_LINE_PULL_UP (1 << 1)
#define RTGAUGE_LINE_PULL_DOWN (1 << 2)

enum rtgauge_context {
	RTGAUGE_CONTEXT_IRQ = 0,	 /* hard irq, on PREEMPT_RT too */
	RTGAUGE_CONTEXT_THREAD = 1,	 /* a FIFO kernel thread woken by the interrupt */
	RTGAUGE_CONTEXT_IRQ_THREAD = 2,	 /* response: a threaded handler */
	RTGAUGE_CONTEXT_IRQ_DEFAULT = 3, /* response: a plain handler, on PREEMPT_RT a thread */
};

/* Reserved words are 0. `cpu`: the CPU of the timer or of the kernel thread. */
struct rtgauge_periodic {
	__u32 abi;
	__u32 context;	 /* irq, thread */
	__u64 period_ns; /* time from one toggle to the next, which is the signal's half-period */
	__u64 count;	 /* number of activations; 0: until stopped */
	__s64 start_ns;	 /* time of activation 0; 0: soon */
	__s32 cpu;
	__u32 priority; /* FIFO, 1 to 99; 0 in context irq */
	struct rtgauge_line out;
	__u32 reserved[8];
};

struct rtgauge_response {
	__u32 abi;
	__u32 context;
	__u64 count;	/* number of edges, answered or missed; 0: until stopped */
	__s32 cpu;	/* CPU of the kernel thread; RTGAUGE_ANY_CPU in every other context */
	__s32 irq_cpu;	/* CPU of the interrupt; RTGAUGE_ANY_CPU: leave it where it is */
	__u32 priority; /* FIFO, 1 to 99; 0 without a kernel thread */
	__u32 reserved0;
	struct rtgauge_line
		in; /* no line: the module makes stimuli itself, and only takes time stamps */
	struct rtgauge_line out; /* follows `in`; no line: the edge is only recorded */
	/* Without a line: bounds of the random time from one stimulus to the next; otherwise 0. */
	__u64 interval_min_ns;
	__u64 interval_max_ns;
	__u64 seed;
	__u32 reserved[2];
};

struct rtgauge_wire {
	__u32 abi;
	__u32 reserved0;
	__u64 count; /* number of samples; 0: until stopped */
	__u32 reserved[8];
};

enum rtgauge_state {
	RTGAUGE_STATE_IDLE = 0,
	RTGAUGE_STATE_RUNNING = 1,
	RTGAUGE_STATE_ENDED = 2,
};

enum rtgauge_reason {
	RTGAUGE_REASON_NONE = 0,
	RTGAUGE_REASON_STOPPED = 1,
	RTGAUGE_REASON_COUNT = 2,
	RTGAUGE_REASON_OVERLOAD = 3, /* activations left no time on the CPU */
};

struct rtgauge_status {
	__u32 state;
	__u32 reason;
	__u64 samples;	/* samples that were taken: still in a ring, read or lost */
	__u64 missed;	/* periodic: activations that were missed; response: edges that came before
			 * the   last one was answered; wire: edges that raised no interrupt of their
			 * own */
	__u64 lost;	/* samples for which a ring had no room */
	__s64 start_ns; /* periodic: time of activation 0; otherwise the start */
	__s64 end_ns;	/* 0: the measurement is running */
	__s32 irq;	/* response: the interrupt's number; 0: none */
	__s32 thread;	/* pid of the kernel thread; 0: none */
	__u32 reserved[8];
};

/* A line of rtgauge_wire. */
struct rtgauge_wire_line {
	__u32 offset; /* which */
	__u32 peer;   /* the line to which it is joined, or RTGAUGE_NO_LINE */
	__u32 output; /* otherwise an input */
	__u32 level;
	__u64 edges;   /* edges that it saw as an input */
	__u64 merged;  /* how many of these came before the previous edge's interrupt was raised */
	__u64 ignored; /* how many of these came without a waiting task */
};

struct rtgauge_wire_ends {
	__u32 a;
	__u32 b;
};

#define RTGAUGE_IOC 'R'
#define RTGAUGE_IOC_INFO _IOR(RTGAUGE_IOC, 0xa0, struct rtgauge_info)
#define RTGAUGE_IOC_CAPACITY _IOW(RTGAUGE_IOC, 0xa1, __u32)
#define RTGAUGE_IOC_STATUS _IOR(RTGAUGE_IOC, 0xa2, struct rtgauge_status)
#define RTGAUGE_IOC_STOP _IO(RTGAUGE_IOC, 0xa3)
#define RTGAUGE_IOC_START_PERIODIC _IOW(RTGAUGE_IOC, 0xa4, struct rtgauge_periodic)
#define RTGAUGE_IOC_START_RESPONSE _IOW(RTGAUGE_IOC, 0xa5, struct rtgauge_response)
#define RTGAUGE_IOC_START_WIRE _IOW(RTGAUGE_IOC, 0xa6, struct rtgauge_wire)
#define RTGAUGE_IOC_JOIN _IOW(RTGAUGE_IOC, 0xa7, struct rtgauge_wire_ends)
#define RTGAUGE_IOC_CUT _IOW(RTGAUGE_IOC, 0xa8, struct rtgauge_wire_ends)
#define RTGAUGE_IOC_LINE _IOWR(RTGAUGE_IOC, 0xa9, struct rtgauge_wire_line)

/*
 * What mmap() shows: this header, and from `first` on, `rings` rings of `stride` bytes each. The
 * user reads `head` with acquire, reads samples[tail % capacity] up to it, and writes `tail`
 * with release.
 */
#define RTGAUGE_MAP_MAGIC 0x67757472 /* "rtug" */
#define RTGAUGE_CAPACITY_MIN 16
#define RTGAUGE_CAPACITY_MAX (1 << 20)
#define RTGAUGE_CAPACITY_DEFAULT 4096

struct rtgauge_map {
	__u32 magic;
	__u32 abi;
	__u32 sample_size;
	__u32 rings;
	__u32 capacity; /* a power of 2 */
	__u32 first;
	__u64 stride;
};

struct rtgauge_ring {
	__u64 head; /* samples written since the start */
	__u64 lost;
	__u64 reserved[6];
	__u64 tail; /* samples that the reader has read; the reader writes this */
	__u64 reserved1[7];
	struct rtgauge_sample samples[];
};

#endif
