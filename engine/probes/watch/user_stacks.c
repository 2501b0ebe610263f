// SPDX-License-Identifier: MIT
#include "probes/watch/user_stacks.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/perf.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "probes/watch/blocking_calls.h"
#include "probes/watch/mounts.h"

#define FRAMES 24  /* of a call chain */
#define WORDS 128  /* of the stack, from its innermost end on */
#define PENDING 32 /* stacks that no rule has claimed yet */
#define KEPT 16	   /* different stacks of a thread */
#define KEPT_PER_RULE 3
#define PER_RULE 32 /* occurrences of a rule whose stacks are taken */
#define RULES 24
#define CALLS_MAX 16	 /* whose stacks are wanted at a time */
#define STACKS_MAX 20000 /* of a thread */
#define RING_PAGES 32
#define CODE 256 /* mappings of code */
#define MOST_STACK 65536
#define TEXT 8192
#define EARLY_NS 20000 /* the kernel runs the two events of one call one after the other */

/* OWNER: records nothing, and has the ring. */
enum { OWNER, CALLS, MINOR, MAJOR, EVENTS };

struct user_stack {
	int kind;
	int64_t time_ns, call; /* the number of the call */
	unsigned int frame_count, word_count;
	uint64_t frames[FRAMES], bp, sp, words[WORDS]; /* frames[0]: the instruction itself */
};

struct kept_stack {
	int rule;
	int64_t count;
	uint32_t id;
	char *text;
};

struct user_stacks {
	pid_t tid;
	bool from_start; /* else from a rule's second time on */
	bool failed;
	int fds[EVENTS];
	uint64_t ids[EVENTS];
	struct perf_event_mmap_page *ring; /* NULL: the kernel keeps nothing at present */
	size_t page;
	int64_t wanted[CALLS_MAX]; /* the calls whose stacks are wanted */
	int wanted_count;
	struct user_stack *pending;
	unsigned int next;
	int taken[RULES];
	struct kept_stack kept[KEPT];
	int kept_count;
};

#if defined(__x86_64__)
#define REGISTERS ((1U << 6) | (1U << 7)) /* bp, sp: arch/x86/include/uapi/asm/perf_regs.h */
#else
#define REGISTERS 0U /* only the innermost function is known there */
#endif

static int64_t event_id(void)
{
	int root = tracefs_open(), file;
	char text[24] = "";
	ssize_t got = -1;

	if (root < 0)
		return -1;
	file = openat(root, "events/raw_syscalls/sys_enter/id", O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		got = read(file, text, sizeof(text) - 1);
		close(file);
	}
	close(root);
	return got > 0 ? strtol(text, NULL, 10) : -1;
}

static int open_event(const struct user_stacks *stacks, int kind)
{
	static const uint64_t software[EVENTS] = {[OWNER] = PERF_COUNT_SW_DUMMY,
						  [MINOR] = PERF_COUNT_SW_PAGE_FAULTS_MIN,
						  [MAJOR] = PERF_COUNT_SW_PAGE_FAULTS_MAJ};
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = kind == CALLS ? PERF_TYPE_TRACEPOINT : PERF_TYPE_SOFTWARE,
		.config = software[kind],
		.sample_period = 1,
		.sample_type =
			PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
		.exclude_callchain_kernel = 1,
		.sample_max_stack = FRAMES,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.disabled = kind == CALLS, /* until it has its filter */
	};
	int64_t id = kind == CALLS ? event_id() : 0;

	if (id < 0)
		return -1;
	if (kind == CALLS)
		attr.config = (uint64_t)id;
	if (REGISTERS) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = REGISTERS;
		attr.sample_stack_user = WORDS * sizeof(uint64_t);
	}
	return (int)syscall(SYS_perf_event_open, &attr, stacks->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void stop(struct user_stacks *stacks, int kind)
{
	if (stacks->fds[kind] >= 0)
		close(stacks->fds[kind]);
	stacks->fds[kind] = -1;
}

/* Ends everything, so that the thread runs as without stacks. */
static void stop_all(struct user_stacks *stacks)
{
	for (int kind = 0; kind < EVENTS; kind++)
		stop(stacks, kind);
	if (stacks->ring)
		munmap(stacks->ring, (RING_PAGES + 1) * stacks->page);
	stacks->ring = NULL;
}

static bool map_ring(struct user_stacks *stacks)
{
	void *ring;

	if (!stacks->pending)
		stacks->pending = memory_get(PENDING * sizeof(*stacks->pending));
	stacks->fds[OWNER] = stacks->pending ? open_event(stacks, OWNER) : -1;
	if (stacks->fds[OWNER] < 0)
		return false;
	ring = mmap(NULL, (RING_PAGES + 1) * stacks->page, PROT_READ | PROT_WRITE, MAP_SHARED,
		    stacks->fds[OWNER], 0);
	stacks->ring = ring == MAP_FAILED ? NULL : ring;
	return stacks->ring != NULL;
}

/* Lets the kernel keep the stacks of an event. filter: of calls. If it cannot, there are no stacks. */
static void start(struct user_stacks *stacks, int kind, const char *filter)
{
	int fd;

	if (stacks->failed || stacks->fds[kind] >= 0)
		return;
	stacks->failed = !stacks->ring && !map_ring(stacks);
	fd = stacks->fds[kind] = stacks->failed ? -1 : open_event(stacks, kind);
	stacks->failed = fd < 0 || ioctl(fd, PERF_EVENT_IOC_ID, &stacks->ids[kind]) ||
			 ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, stacks->fds[OWNER]) ||
			 (kind == CALLS && (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) ||
					    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)));
	if (stacks->failed)
		stop_all(stacks);
}

/* Begins anew with the calls that are wanted now: the kernel does not change the filter of an event. */
static void start_calls(struct user_stacks *stacks)
{
	char filter[CALL_FILTER_MAX] = "";
	size_t len = 0;

	stop(stacks, CALLS);
	if (stacks->from_start)
		blocking_calls_costly_filter(filter);
	len = strlen(filter);
	for (int i = 0; i < stacks->wanted_count; i++)
		len += (size_t)snprintf(filter + len, sizeof(filter) - len, "%sid==%lld", len ? "||" : "",
					(long long)stacks->wanted[i]);
	if (len)
		start(stacks, CALLS, filter);
}

/* Ends what is not needed any more. */
static void rest(struct user_stacks *stacks)
{
	if (stacks->fds[CALLS] < 0 && stacks->fds[MINOR] < 0 && stacks->fds[MAJOR] < 0)
		stop_all(stacks);
}

struct user_stacks *user_stacks_open(pid_t tid, bool from_start)
{
	struct user_stacks *stacks = memory_get(sizeof(*stacks));

	if (!stacks)
		return NULL;
	stacks->tid = tid;
	stacks->from_start = from_start;
	stacks->page = (size_t)sysconf(_SC_PAGESIZE);
	for (int kind = 0; kind < EVENTS; kind++)
		stacks->fds[kind] = -1;
	if (from_start) {
		start(stacks, MINOR, NULL);
		start(stacks, MAJOR, NULL);
		start_calls(stacks);
	}
	return stacks;
}

/* Takes one sample. data: what follows its header, in whole words. */
static void take(struct user_stacks *stacks, const uint64_t *data, size_t count)
{
	struct user_stack *stack = &stacks->pending[stacks->next % PENDING];
	uint64_t id, frames;
	size_t at = 3;

	if (count < 3)
		return;
	id = data[0];
	*stack = (struct user_stack){.kind = id == stacks->ids[MINOR]	? MINOR
					     : id == stacks->ids[MAJOR] ? MAJOR
									: CALLS,
				     .time_ns = (int64_t)data[1]};
	frames = data[2];
	for (uint64_t i = 0; i < frames && at < count; i++, at++) {
		/* The largest numbers say only whose frames follow. */
		if (data[at] < (uint64_t)-4095 && stack->frame_count < FRAMES)
			stack->frames[stack->frame_count++] = data[at];
	}
	if (at + (stack->kind == CALLS ? 3 : 1) > count)
		return;
	/* The size of the event as the tracing system has it (4 bytes), and the event. In sys_enter, the
	 * number of the call is at byte 8. */
	if (stack->kind == CALLS)
		stack->call = (int64_t)(data[at + 1] >> 32 | data[at + 2] << 32);
	at += (sizeof(uint32_t) + (uint32_t)data[at]) / sizeof(uint64_t);
	if (REGISTERS && at < count && data[at++]) { /* the ABI; 0: there are no registers */
		if (at + 3 > count)
			return;
		stack->bp = data[at++];
		stack->sp = data[at++];
		if (at + 1 + WORDS < count && data[at] == WORDS * sizeof(uint64_t)) {
			uint64_t size = data[at + 1 + WORDS] / sizeof(uint64_t);

			stack->word_count = size < WORDS ? (unsigned int)size : WORDS;
			memcpy(stack->words, data + at + 1, stack->word_count * sizeof(uint64_t));
		}
	}
	if (stack->frame_count)
		stacks->next++;
}

void user_stacks_read(struct user_stacks *stacks)
{
	static uint64_t record[UINT16_MAX / sizeof(uint64_t) + 1];
	const struct perf_event_header *header = (const void *)record;
	size_t size;

	while (stacks->ring && (size = perf_ring_next(stacks->ring, record, sizeof(record))) > 0) {
		if (header->type == PERF_RECORD_SAMPLE)
			take(stacks, record + 1, size / sizeof(uint64_t) - 1);
	}
}

/* A mapping with code, of a file. */
struct code_file {
	uint64_t start, end, offset;
	int number; /* of those that are used; 0: none yet */
	bool identified;
	char build_id[41], path[256];
};

/* All of the thread whose stacks are kept now. */
static struct {
	struct code_file files[CODE];
	int count;
} code;

/* Reads the number with which the linker identifies a file. Leaves it empty if there is none. */
static void read_build_id(int fd, char id[41])
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	unsigned char notes[1024];
	ElfW(Nhdr) note;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	for (int i = 0; i < head.e_phnum && i < 64; i++) {
		ssize_t got;

		if (pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + (size_t)i * sizeof(part))) !=
		    sizeof(part))
			return;
		if (part.p_type != PT_NOTE)
			continue;
		got = pread(fd, notes, part.p_filesz < sizeof(notes) ? part.p_filesz : sizeof(notes),
			    (off_t)part.p_offset);
		for (size_t at = 0; got > 0 && at + sizeof(note) <= (size_t)got;) {
			size_t name = at + sizeof(note), text;

			memcpy(&note, notes + at, sizeof(note));
			if (note.n_namesz > sizeof(notes) || note.n_descsz > sizeof(notes))
				break;
			text = name + ((note.n_namesz + 3) & ~3U);
			if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz <= 20 &&
			    text + note.n_descsz <= (size_t)got && !memcmp(notes + name, "GNU", 4)) {
				for (unsigned int k = 0; k < note.n_descsz; k++)
					snprintf(id + (size_t)2 * k, 3, "%02x", notes[text + k]);
				return;
			}
			at = text + ((note.n_descsz + 3) & ~3U);
		}
	}
}

/* Asks no server, which may never answer, and opens no device, because that may have an effect. */
static void identify(pid_t tid, struct code_file *file)
{
	struct stat status;
	char link[96];
	enum place place;
	int fd, known;

	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)tid,
		 (unsigned long long)file->start, (unsigned long long)file->end);
	known = open(link, O_PATH | O_CLOEXEC);
	if (known < 0)
		return;
	if (mounts_place(tid, getpid(), known, &place) && (place == LOCAL || place == IN_MEMORY) &&
	    !fstat(known, &status) && S_ISREG(status.st_mode)) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", known);
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0) {
			read_build_id(fd, file->build_id);
			close(fd);
		}
	}
	close(known);
}

/* Reads the thread's mappings of code, which may delay its own changes of them. */
static void read_code(pid_t tid)
{
	char path[48], line[512];
	FILE *maps;

	code.count = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	maps = fopen(path, "re");
	while (maps && code.count < CODE && fgets(line, sizeof(line), maps)) {
		unsigned long long start, end, offset;
		char may[5];
		int name = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, may, &offset, &name) < 4 ||
		    may[2] != 'x')
			continue;
		struct code_file *file = &code.files[code.count++];

		*file = (struct code_file){.start = start, .end = end, .offset = offset};
		snprintf(file->path, sizeof(file->path), "%.255s",
			 name && line[name] ? line + name : "[no file]");
	}
	if (maps)
		fclose(maps);
}

/* What describes a stack as text, without addresses that change from run to run. */
struct description {
	pid_t tid;
	int used; /* files */
	char text[TEXT];
	size_t len;
	uint32_t id; /* FNV-1a of its frames */
};

__attribute__((format(printf, 2, 3))) static void say(struct description *d, const char *format, ...)
{
	va_list arguments;
	int len;

	va_start(arguments, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is initialized */
	len = vsnprintf(d->text + d->len, sizeof(d->text) - d->len, format, arguments);
	va_end(arguments);
	if (len > 0 && d->len + (size_t)len < sizeof(d->text))
		d->len += (size_t)len;
	else
		d->text[d->len] = '\0';
}

/* Returns the file with the code at an address, which is announced at first; NULL: there is none. */
static const struct code_file *code_at(struct description *d, uint64_t address)
{
	for (int i = 0; i < code.count; i++) {
		struct code_file *file = &code.files[i];

		if (address < file->start || address >= file->end)
			continue;
		if (!file->number) {
			file->number = ++d->used;
			if (file->path[0] == '/' && !file->identified)
				identify(d->tid, file);
			file->identified = true;
			say(d, "m%d %s %s\n", file->number, file->build_id[0] ? file->build_id : "-",
			    file->path);
		}
		return file;
	}
	return NULL;
}

static void describe_frame(struct description *d, uint64_t address)
{
	const struct code_file *file = code_at(d, address);
	uint64_t offset = file ? address - file->start + file->offset : 0;

	if (!file)
		return;
	say(d, "f %d %llx\n", file->number, (unsigned long long)offset);
	for (unsigned int i = 0; i < 8 * sizeof(offset); i += 8)
		d->id = (d->id ^ (uint32_t)(offset >> i & 0xff)) * 16777619U;
}

static void describe(struct description *d, const struct user_stack *stack)
{
	uint64_t size = stack->word_count * sizeof(uint64_t);

	d->id = 2166136261U;
	for (unsigned int i = 0; i < stack->frame_count; i++) {
		if (!code_at(d, stack->frames[i]))
			break; /* what follows is no frame */
		describe_frame(d, stack->frames[i]);
	}
	if (stack->bp - stack->sp <= MOST_STACK)
		say(d, "b %llx\n", (unsigned long long)(stack->bp - stack->sp));
	for (unsigned int i = 0; i < stack->word_count; i++) {
		uint64_t word = stack->words[i], offset;
		const struct code_file *file = code_at(d, word);

		offset = file ? word - file->start + file->offset : word - stack->sp;
		if (file)
			say(d, "s%x %d %llx\n", i * 8, file->number, (unsigned long long)offset);
		else if (size && offset <= MOST_STACK)
			say(d, "p%x %llx\n", i * 8, (unsigned long long)offset);
	}
}

/* Needs the mappings of the thread. */
static void keep(struct user_stacks *stacks, int rule, const struct user_stack *stack)
{
	static struct description d;
	int of_rule = 0;

	d = (struct description){.tid = stacks->tid};
	for (int i = 0; i < code.count; i++)
		code.files[i].number = 0;
	describe(&d, stack);
	if (!d.len)
		return;
	for (int i = 0; i < stacks->kept_count; i++) {
		struct kept_stack *kept = &stacks->kept[i];

		if (kept->rule == rule && kept->id == d.id) {
			kept->count++;
			return;
		}
		of_rule += kept->rule == rule;
	}
	if (of_rule == KEPT_PER_RULE || stacks->kept_count == KEPT)
		return;
	stacks->kept[stacks->kept_count] =
		(struct kept_stack){.rule = rule, .count = 1, .id = d.id, .text = strdup(d.text)};
	stacks->kept_count += stacks->kept[stacks->kept_count].text != NULL;
}

/* Returns whether more stacks of the rule are wanted. */
static bool wants(struct user_stacks *stacks, int rule)
{
	return rule >= 0 && rule < RULES && stacks->taken[rule] < PER_RULE;
}

static void want_call(struct user_stacks *stacks, int64_t call)
{
	for (int i = 0; i < stacks->wanted_count; i++) {
		if (stacks->wanted[i] == call)
			return;
	}
	if (call < 0 || stacks->wanted_count == CALLS_MAX)
		return;
	stacks->wanted[stacks->wanted_count++] = call;
	start_calls(stacks);
}

static void unwant_call(struct user_stacks *stacks, int64_t call)
{
	for (int i = 0; i < stacks->wanted_count; i++) {
		if (stacks->wanted[i] == call) {
			stacks->wanted[i] = stacks->wanted[--stacks->wanted_count];
			start_calls(stacks);
			rest(stacks);
			return;
		}
	}
}

/* A call that many rules forbid, or that breaks its rule seldom, costs for so many of its times at most. */
static void tire(struct user_stacks *stacks)
{
	if (!stacks->failed && stacks->next > STACKS_MAX) {
		stacks->failed = true;
		stop_all(stacks);
	}
}

void user_stacks_call(struct user_stacks *stacks, int rule, int64_t call, int64_t enter_ns, int64_t exit_ns)
{
	tire(stacks);
	if (!wants(stacks, rule))
		return;
	for (int i = 0; stacks->pending && i < PENDING; i++) {
		struct user_stack *stack = &stacks->pending[i];

		if (!stack->frame_count || stack->kind != CALLS || stack->call != call ||
		    stack->time_ns < enter_ns - EARLY_NS || stack->time_ns > exit_ns)
			continue;
		read_code(stacks->tid);
		keep(stacks, rule, stack);
		stack->frame_count = 0;
		if (++stacks->taken[rule] == PER_RULE)
			unwant_call(stacks, call);
		return;
	}
	want_call(stacks, call);
}

void user_stacks_faults(struct user_stacks *stacks, int rule, bool major)
{
	int kind = major ? MAJOR : MINOR;
	bool knows_code = false;

	for (int i = 0; stacks->pending && i < PENDING; i++) {
		struct user_stack *stack = &stacks->pending[i];

		if (!stack->frame_count || stack->kind != kind)
			continue;
		if (wants(stacks, rule)) {
			if (!knows_code)
				read_code(stacks->tid);
			knows_code = true;
			keep(stacks, rule, stack);
			stacks->taken[rule]++;
		}
		stack->frame_count = 0;
	}
	if (wants(stacks, rule)) {
		start(stacks, kind, NULL);
	} else if (rule >= 0) {
		stop(stacks, kind);
		rest(stacks);
	}
}

void user_stacks_write(const struct user_stacks *stacks, int rule, const char *task, const char *rule_name,
		       const char *call, struct json *j)
{
	for (int i = 0; i < stacks->kept_count; i++) {
		const struct kept_stack *kept = &stacks->kept[i];
		char id[12];

		if (kept->rule != rule)
			continue;
		snprintf(id, sizeof(id), "%08x", (unsigned int)kept->id);
		stream_result(j, "rule-stack");
		json_str(j, "task", task);
		json_str(j, "rule", rule_name);
		json_str(j, "call", call);
		json_str(j, "stack", id);
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "count", kept->count);
		json_str(j, "frames", kept->text);
		stream_result_end(j);
	}
}
