// SPDX-License-Identifier: MIT
#include "harness/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpuset.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/pid_namespace.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "harness/explain_cost.h"
#include "harness/moment_budget.h"
#include "harness/quota.h"
#include "harness/steal.h"
#include "trace/addresses.h"
#include "trace/events.h"
#include "trace/instance.h"
#include "trace/ring_copy.h"
#include "trace/symbols.h"
#include "trace/tracepoints.h"

#define BEFORE_NS (2 * NS_PER_S / 1000) /* what a moment includes before the release and after the end */
#define AFTER_NS (NS_PER_S / 2000)
#define PAUSE_NS (NS_PER_S / 50)
#define TRIGGERED_MAX 16
#define AT_ONCE 32 /* latencies between two looks */
#define HURRY_NS (60 * NS_PER_S)
#define MOMENT_BYTES_MAX (3U << 20) /* in Base64: the host accepts no line above 4 MiB */
#define PAGE_BYTES_MAX (1U << 20)
#define SERIES_MAX 4096
#define SHARING_CPUS_MAX 8
#define EVENTS_MAX_NS (NS_PER_S / 10) /* of a longer time, only the events of the last part are kept */

#define DEFAULT_EVENTS                                                                                       \
	TRACE_USUAL_EVENTS ",exceptions/page_fault_user,exceptions/page_fault_kernel,"                       \
			   "timer/hrtimer_rearm,timer_migration/tmigr_handle_remote_cpu"

/*
 * A writer that waits for the lock of a program's memory map first spins, which contention_begin does not
 * report. Kernels before 6.14 look up a control group's name for each of these events, at each page fault.
 */
#define MEMORY_LOCK_EVENTS                                                                                   \
	",mmap_lock/mmap_lock_start_locking,mmap_lock/mmap_lock_acquire_returned,"                           \
	"mmap_lock/mmap_lock_released"
#define MEMORY_LOCK_FORMAT "events/mmap_lock/mmap_lock_start_locking/format"
#define MEMORY_LOCK_CHEAP "memcg_id"

/*
 * The kernel does not trace the end of a page fault. But shortly before the end, it counts the new page, or
 * flushes the address of the old one. At some faults, it then puts the pages of many on its lists.
 */
#define FAULT_EVENTS ",kmem/rss_stat,tlb/tlb_flush,pagemap/mm_lru_insertion"
#define FAULT_GROUP "exceptions/"
#define THREADS_APART 5000    /* how much larger the numbers of the engine's threads may be than its own */
#define FLUSHES "reason>=3&&" /* TLB_LOCAL_MM_SHOOTDOWN and TLB_REMOTE_SEND_IPI, not at each switch */

/*
 * Calls in which a thread of the program may sleep, perhaps with a lock, and calls that take a lock. A thread
 * that leaves a call runs, even if the kernel did not trace the switch to it.
 */
#define CALL_GROUP "syscalls/"
#define CALLS                                                                                                \
	"futex,fsync,fdatasync,sync_file_range,msync,write,writev,pwrite64,read,readv,pread64,"              \
	"openat,ioctl,poll,ppoll,select,pselect6,epoll_wait,epoll_pwait,nanosleep,"                          \
	"clock_nanosleep,sendto,sendmsg,recvfrom,recvmsg,accept4,munmap,mmap,mprotect,madvise,"              \
	"wait4,flock,rt_sigtimedwait,futex_time64,clock_nanosleep_time64,ppoll_time64,"                      \
	"pselect6_time64,"

/* The time that the kernel counts for a task excludes the time that a hypervisor took. Times too short to
 * matter are left out. */
#define RUNTIME_EVENT "sched/sched_stat_runtime"
#define RUNTIME_FILTER "runtime>=5000"

/* The timers that end the throttling of a group with a CPU quota. Other timers are not recorded. */
#define TIMER_EVENT "timer/hrtimer_expire_entry"
#define TIMER_FILTER "events/" TIMER_EVENT "/filter"

/* New kernels (7.3 is one) may program a CPU's next timer after the interrupt, on its way out. Only such a
 * delay can make a timer late. */
#define REARM_EVENT "timer/hrtimer_rearm"
#define REARM_FILTER "deferred==1"

#define STACK "stack" /* not an event: with each timer, a stack of the interrupted code */
#define STACK_FORMAT "events/ftrace/kernel_stack/format"
#define STACK_TRIGGER "events/timer/hrtimer_expire_entry/trigger"

struct explain_options explain_options = {.buffer_kb = 512, .events = "default"};

const struct option_entry explain_options_table[] = {
	{.name = "explain-instance",
	 .kind = OPTION_TEXT,
	 .value = &explain_options.instance,
	 .help = "explain the largest latencies by the kernel's events, which this instance of tracefs "
		 "records"},
	{.name = "explain-above-ns",
	 .kind = OPTION_INT,
	 .value = &explain_options.above_ns,
	 .min = 0,
	 .max = INT64_MAX / 4,
	 .help = "also explain each latency above this, in ns; 0: explain only each new largest latency"},
	{.name = "explain-events",
	 .kind = OPTION_TEXT,
	 .value = &explain_options.events,
	 .help = "events to record: group/event, group, group/*end or default, separated by commas"},
	{.name = "explain-buffer-kb",
	 .kind = OPTION_INT,
	 .value = &explain_options.buffer_kb,
	 .min = 16,
	 .max = 65536,
	 .help = "trace buffer of each CPU"},
	{.name = "explain-cost-ns",
	 .kind = OPTION_INT,
	 .value = &explain_options.cost_ns,
	 .min = 0,
	 .max = 60 * NS_PER_S,
	 .help = "time added to the warm-up to measure what the events cost"},
	{.name = "explain-every-ns",
	 .kind = OPTION_INT,
	 .value = &explain_options.every_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "keep one latency of each size (power of two) in each such time, and 16 at once after a quiet "
		 "time; 0: keep 200, then only new largest latencies"},
	{0},
};

enum kind { KIND_MAXIMUM, KIND_ABOVE, KIND_BLOCKED, KIND_WAITED, KIND_TRIGGERED };

static const char *const kinds[] = {"maximum", "above", "blocked", "waited", "triggered"};

struct candidate {
	unsigned int series;
	enum kind kind;
	bool above; /* the threshold */
	int64_t release_ns, latency_ns;
	int64_t request; /* its number */
	struct explained who;
};

static struct {
	bool on, steals;
	bool awaits_quota; /* the timers that end throttling are recorded as soon as a group has a quota */
	int64_t quota_since_ns; /* they are recorded since then; 0: they are not */
	char failure[300];
	int instance, own; /* which records, and which nobody else may use meanwhile */
	bool shared;	   /* the probe's rings */
	struct explain_rings rings;
	char *events[TRACE_EVENTS_MAX];
	unsigned int event_count;
	size_t page_size, data_offset;
	struct addresses addresses;
	struct symbols *symbols;
	bool stack;
	char stack_format[TRACE_TEXT_MAX];
	char header_page[TRACE_TEXT_MAX], header_event[TRACE_TEXT_MAX];

	explain_who who;
	const struct harness *harness; /* the probe whose series are explained */
	pid_t first_task, last_task;   /* the watched program's lowest and highest task numbers; 0: none */
	int64_t *maximum_ns;	       /* the largest of each series, */
	int64_t *off_maximum_ns;       /* and while events were off */
	struct candidate candidates[AT_ONCE];
	unsigned int candidate_count;
	struct candidate triggered[TRIGGERED_MAX]; /* the events after them have not come yet */
	unsigned int triggered_count;

	int64_t hurries_until_ns; /* after events of a latency were overwritten */
	struct moment_budget budget;
	int64_t copy_max_ns;
	int64_t overwritten, over_budget, too_many, events_off; /* latencies not captured */
} explain = {.own = -1};

static bool failed(const char *what)
{
	snprintf(explain.failure, sizeof(explain.failure), "%s: %s", what, strerror(errno));
	return false;
}

int explain_check(void)
{
	if (explain_options.instance && !tracefs_is_name(explain_options.instance))
		return usage_error("--explain-instance %.80s: give at most 64 letters, digits, - and _",
				   explain_options.instance);
	return 0;
}

int64_t explain_warm_up_ns(void)
{
	return explain_options.instance ? explain_cost_ns(explain_options.cost_ns) : 0;
}

/* Takes the instance. Returns false with errno if that is not possible. */
static bool open_own(int root)
{
	if (explain.own < 0)
		explain.own = trace_instance_open(root, explain_options.instance);
	return explain.own >= 0;
}

bool explain_can_share(void)
{
	static const char *const usual[] = {"default", "default,sched/sched_wakeup"};
	struct cpuset online;
	int root;
	bool can;

	if (!cpuset_online(&online))
		cpuset_allowed(&online);
	if (!explain_options.instance || cpuset_count(&online) > SHARING_CPUS_MAX ||
	    (strcmp(explain_options.events, usual[0]) != 0 && strcmp(explain_options.events, usual[1]) != 0))
		return false;
	root = tracefs_open();
	can = root >= 0 && open_own(root);
	if (root >= 0)
		close(root);
	return can;
}

void explain_share(const struct explain_rings *rings)
{
	explain.shared = true;
	explain.rings = *rings;
}

/* The instance whose name the group of dynamic events has: whoever removes it removes them. */
static const char *recording_instance(void)
{
	return explain.shared ? explain.rings.name : explain_options.instance;
}

/* Returns whether the probe records this event, also while explaining does not. */
static bool is_probes(const char *event)
{
	return explain.shared && explain.rings.has(explain.rings.user, event);
}

static bool has_memory_lock(void)
{
	char format[TRACE_TEXT_MAX];
	struct trace_field field;

	return explain.last_task && trace_read(explain.instance, MEMORY_LOCK_FORMAT, format) &&
	       trace_find_field(format, MEMORY_LOCK_CHEAP, &field);
}

/* Adds the scheduler's tracepoints and the watched program's calls to the default events. */
static const char *default_events(void)
{
	static char list[8192];
	char group[TRACE_NAME_MAX];
	size_t len;

	tracepoints_group(recording_instance(), group);
	len = (size_t)snprintf(
		list, sizeof(list), "%s,%s%s%s%s%s", DEFAULT_EVENTS, group,
		explain.last_task ? FAULT_EVENTS : "", has_memory_lock() ? MEMORY_LOCK_EVENTS : "",
		explain.steals ? "," RUNTIME_EVENT : "", explain.awaits_quota ? "," TIMER_EVENT : "");

	for (const char *at = explain.last_task ? CALLS : ""; *at;) {
		int name = (int)strcspn(at, ",");

		len += (size_t)snprintf(list + len, sizeof(list) - len,
					"," CALL_GROUP "sys_enter_%.*s," CALL_GROUP "sys_exit_%.*s", name, at,
					name, at);
		at += name + 1;
	}
	return list;
}

/* Replaces the word `default` in the list. */
static unsigned int find_events(void)
{
	static char list[12288];
	const char *usual_events = default_events();
	size_t len = 0;

	for (const char *at = explain_options.events; *at;) {
		size_t word = strcspn(at, ",");
		bool usual = word == strlen("default") && !strncmp(at, "default", word);
		bool stack = word == strlen(STACK) && !strncmp(at, STACK, word);
		int added;

		explain.stack = explain.stack || stack;
		added = snprintf(list + len, sizeof(list) - len, "%.*s,",
				 usual	 ? (int)strlen(usual_events)
				 : stack ? 0
					 : (int)word,
				 usual ? usual_events : at);
		if (added < 0 || (size_t)added >= sizeof(list) - len)
			break;
		len += (size_t)added;
		at += word + (at[word] == ',');
	}
	return trace_events_find(explain.instance, list, explain.events);
}

/* Reads the layout of the kernel's pages. */
static bool read_layout(int root)
{
	struct trace_field data;

	if (!trace_read(root, "events/header_page", explain.header_page) ||
	    !trace_read(root, "events/header_event", explain.header_event))
		return failed("events/header_page");
	if (!trace_find_field(explain.header_page, "data", &data) || data.offset > PAGE_BYTES_MAX ||
	    data.size > PAGE_BYTES_MAX || !trace_entries_known(explain.header_event)) {
		errno = EPROTO;
		return failed("events/header_page");
	}
	explain.data_offset = data.offset;
	explain.page_size = data.offset + data.size;
	return true;
}

static bool enable_event(const char *name, bool on)
{
	if (is_probes(name) || (explain.awaits_quota && !strcmp(name, TIMER_EVENT)))
		return true;
	return trace_event_enable(explain.instance, name, on);
}

/* Leaves the dynamic events on: for each that is switched off, the kernel waits for all CPUs. */
static void switch_events(bool on)
{
	char group[TRACE_NAME_MAX];

	tracepoints_group(recording_instance(), group);
	if (explain.stack)
		trace_write(explain.instance, STACK_TRIGGER, on ? "stacktrace" : "!stacktrace");
	for (unsigned int i = 0; i < explain.event_count; i++) {
		if (strncmp(explain.events[i], group, strlen(group)) != 0)
			enable_event(explain.events[i], on);
	}
}

static void end_events(void)
{
	char group[TRACE_NAME_MAX];

	switch_events(false);
	tracepoints_group(recording_instance(), group);
	trace_event_enable(explain.instance, group, false);
}

/* By name if the kernel can: reading /proc/kallsyms takes up to half a second on a slow machine, and what is
 * throttled meanwhile lacks its end. */
static bool filter_quota_timers(void)
{
	uint64_t period, slack;
	char filter[80];

	if (trace_write(explain.instance, TIMER_FILTER,
			"function.function == sched_cfs_period_timer || "
			"function.function == sched_cfs_slack_timer"))
		return true;
	period = symbols_address("sched_cfs_period_timer");
	slack = symbols_address("sched_cfs_slack_timer");
	snprintf(filter, sizeof(filter), "function==0x%" PRIx64 "||function==0x%" PRIx64, period, slack);
	return period && slack && trace_write(explain.instance, TIMER_FILTER, filter);
}

/* Records the timers that end throttling, once a followed group has a quota. */
static void begin_quota_timers(void)
{
	if (!explain.awaits_quota || !quota_is_used())
		return;
	explain.awaits_quota = false;
	if (filter_quota_timers() && trace_event_enable(explain.instance, TIMER_EVENT, true))
		explain.quota_since_ns = clock_now_ns(CLOCK_MONOTONIC);
}

/* Records only the program's own calls, its own use of its lock and its own page faults; without a program,
 * those of this engine's threads. Others map memory some 100,000 times a second, and would fill the rings. */
static void filter_event(const char *name)
{
	static const struct {
		const char *group, *condition;
	} filtered[] = {{CALL_GROUP, ""}, {FAULT_GROUP, ""}, {"mmap_lock/", "write==1&&"},
			{"kmem/", ""},	  {"pagemap/", ""},  {"tlb/", FLUSHES}};
	char path[200], range[TRACE_RANGE_MAX], filter[TRACE_RANGE_MAX + 40];
	const size_t count = sizeof(filtered) / sizeof(*filtered);
	pid_t first = explain.last_task ? explain.first_task : getpid();
	pid_t last = explain.last_task ? explain.last_task : first + THREADS_APART;
	size_t at = 0;

	if (is_probes(name))
		return;
	if (!strcmp(name, RUNTIME_EVENT))
		trace_write(explain.instance, "events/" RUNTIME_EVENT "/filter", RUNTIME_FILTER);
	if (!strcmp(name, REARM_EVENT))
		trace_write(explain.instance, "events/" REARM_EVENT "/filter", REARM_FILTER);
	while (at < count && strncmp(name, filtered[at].group, strlen(filtered[at].group)))
		at++;
	if (at == count || (!explain.last_task && strcmp(filtered[at].group, FAULT_GROUP) != 0))
		return;
	snprintf(path, sizeof(path), "events/%s/filter", name);
	trace_range("common_pid", first, last, explain.last_task ? getpid() : 0, range);
	snprintf(filter, sizeof(filter), "%s%s", filtered[at].condition, range);
	trace_write(explain.instance, path, filter);
}

void explain_program(pid_t first, pid_t last)
{
	if (first == explain.first_task && last == explain.last_task)
		return;
	explain.first_task = first;
	explain.last_task = last;
	for (unsigned int i = 0; explain.on && i < explain.event_count; i++)
		filter_event(explain.events[i]);
}

/* Leaves out events that cannot be enabled. */
static bool begin_events(void)
{
	unsigned int kept = 0, found = find_events();
	char format[TRACE_TEXT_MAX];

	for (unsigned int i = 0; i < found; i++) {
		filter_event(explain.events[i]);
		if (!trace_event_format(explain.instance, explain.events[i], format) ||
		    !enable_event(explain.events[i], true))
			continue;
		if (strcmp(explain.events[i], "exceptions/page_fault_user") !=
		    0) /* its `ip` is in a user program */
			addresses_add(&explain.addresses, format);
		explain.events[kept++] = explain.events[i];
	}
	explain.event_count = kept;
	errno = ENOENT;
	return kept || failed("events");
}

/* If a kernel has no stacks, the explanation goes without. */
static void begin_stack(int root)
{
	explain.stack = explain.stack && trace_read(root, STACK_FORMAT, explain.stack_format) &&
			addresses_add_stack(&explain.addresses, explain.stack_format) &&
			trace_write(explain.instance, STACK_TRIGGER, "stacktrace");
}

static bool set_buffer(void)
{
	char number[32];

	snprintf(number, sizeof(number), "%lld", (long long)explain_options.buffer_kb);
	if (!trace_write(explain.instance, "tracing_on", "0") ||
	    !trace_write(explain.instance, "trace_clock", "mono"))
		return failed("trace_clock");
	trace_write(explain.instance, TRACE_USER_DATA, "0");	 /* it would cost time, and needs no record */
	trace_write(explain.instance, "options/overwrite", "1"); /* the default, unless somebody changed it */
	return trace_write(explain.instance, "buffer_size_kb", number) || failed("buffer_size_kb");
}

/* Not a static variable, because these are locked in memory even if nothing is explained. */
static bool get_memory(void)
{
	explain.symbols = memory_get(sizeof(*explain.symbols));
	explain.maximum_ns = memory_get((size_t)2 * SERIES_MAX * sizeof(*explain.maximum_ns));
	explain.off_maximum_ns = explain.maximum_ns ? explain.maximum_ns + SERIES_MAX : NULL;
	errno = ENOMEM;
	return (explain.symbols && explain.maximum_ns) || failed("memory");
}

static bool open_rings(void)
{
	if (explain.shared)
		return ring_copy_share(explain.rings.stores, explain.rings.count) || failed("memory");
	return set_buffer() && (ring_copy_open(explain.instance, explain.page_size, explain.data_offset,
					       (size_t)explain_options.buffer_kb * 1024) ||
				failed("trace_pipe_raw"));
}

static bool begin_tracing(void)
{
	int root;
	bool ok;

	if (!pids_are_the_kernels()) {
		snprintf(explain.failure, sizeof(explain.failure), "%s", PIDS_ARE_OTHERS);
		return false;
	}
	root = tracefs_open();
	if (root < 0)
		return failed("tracefs");
	ok = open_own(root);
	explain.instance = explain.shared ? explain.rings.instance : explain.own;
	if (!ok && errno == EBUSY)
		snprintf(explain.failure, sizeof(explain.failure),
			 "another rtgauge, perhaps in a container, is recording them");
	else if (!ok)
		failed(explain_options.instance);
	ok = ok && read_layout(root) && get_memory() && open_rings();
	if (ok && strstr(explain_options.events, "default"))
		tracepoints_create(root, recording_instance());
	ok = ok && begin_events();
	if (ok)
		begin_stack(root);
	close(root);
	if (!ok)
		return false;
	return explain.shared || trace_write(explain.instance, "tracing_on", "1") || failed("tracing_on");
}

/* Returns the smallest latency of those that are no maximum; NULL: there is none. */
static struct candidate *find_smallest(void)
{
	struct candidate *found = NULL;

	for (unsigned int i = 0; i < explain.candidate_count; i++) {
		struct candidate *each = &explain.candidates[i];

		if (each->kind == KIND_ABOVE && (!found || each->latency_ns < found->latency_ns))
			found = each;
	}
	return found;
}

static bool within_budget(const struct candidate *c)
{
	return moment_budget_has(&explain.budget, c->kind != KIND_ABOVE, c->latency_ns,
				 c->release_ns + c->latency_ns);
}

static void add_candidate(const struct candidate *candidate)
{
	struct candidate *smallest;

	/* If a maximum was exceeded within a few ms, only the larger one is reported. */
	bool each = candidate->kind == KIND_ABOVE || candidate->kind == KIND_TRIGGERED;

	if (!within_budget(candidate)) {
		explain.over_budget++;
		return;
	}
	for (unsigned int i = 0; i < explain.candidate_count && !each; i++) {
		struct candidate *before = &explain.candidates[i];

		if (before->series == candidate->series && before->kind == candidate->kind &&
		    !before->above) {
			*before = *candidate;
			return;
		}
	}
	if (explain.candidate_count < AT_ONCE) {
		explain.candidates[explain.candidate_count++] = *candidate;
		return;
	}
	explain.too_many++;
	smallest = find_smallest();
	if (smallest && (candidate->kind != KIND_ABOVE || candidate->latency_ns > smallest->latency_ns))
		*smallest = *candidate;
}

/* If switching the events took longer than the warm-up has time for it, the first measured latencies lack
 * some of theirs. Counts those that would have had a moment. */
static void count_events_off(unsigned int series, bool above, int64_t value_ns)
{
	int64_t *maximum_ns = &explain.off_maximum_ns[series];

	explain.events_off += above || value_ns > *maximum_ns;
	*maximum_ns = value_ns > *maximum_ns ? value_ns : *maximum_ns;
}

static void sample_taken(const struct series *s, int64_t time_ns, int64_t value_ns)
{
	struct candidate candidate = {.series = s->id, .release_ns = time_ns, .latency_ns = value_ns};
	bool above = explain_options.above_ns && value_ns > explain_options.above_ns;

	if (s->id >= SERIES_MAX || (s->measuring && !above && value_ns <= explain.maximum_ns[s->id]))
		return;
	if (!explain.who(explain.harness, s, &candidate.who))
		return;
	quota_follow(candidate.who.tid);
	if (!s->measuring) {
		explain_cost_sample(time_ns, value_ns);
		return;
	}
	if (!explain_cost_had_events(time_ns)) {
		count_events_off(s->id, above, value_ns);
		return;
	}
	candidate.above = above;
	candidate.kind = KIND_ABOVE;
	if (value_ns > explain.maximum_ns[s->id]) {
		explain.maximum_ns[s->id] = value_ns;
		candidate.kind = KIND_MAXIMUM;
	}
	add_candidate(&candidate);
}

void explain_sleep(const struct series *s, int64_t from_ns, int64_t slept_ns, bool inverted,
		   const struct explained *who)
{
	const struct candidate candidate = {.series = s->id,
					    .kind = inverted ? KIND_BLOCKED : KIND_WAITED,
					    .release_ns = from_ns,
					    .latency_ns = slept_ns,
					    .who = *who};

	if (!explain.on)
		return;
	if (explain_cost_had_events(from_ns))
		add_candidate(&candidate);
	else
		explain.events_off++;
}

static struct ring_window window_of(const struct candidate *c)
{
	if (c->kind == KIND_TRIGGERED)
		return (struct ring_window){c->release_ns - BEFORE_NS,
					    c->release_ns + c->latency_ns + TRIGGERED_NS};
	int64_t end_ns = c->release_ns + c->latency_ns, from_ns = c->release_ns - BEFORE_NS;

	if (from_ns < end_ns - EVENTS_MAX_NS)
		from_ns = end_ns - EVENTS_MAX_NS;
	return (struct ring_window){from_ns, end_ns + AFTER_NS};
}

void explain_trigger(const struct series *s, int64_t time_ns, int64_t number, const struct explained *who)
{
	const struct candidate candidate = {.series = s->id,
					    .kind = KIND_TRIGGERED,
					    .release_ns = time_ns - TRIGGERED_NS,
					    .latency_ns = TRIGGERED_NS,
					    .request = number,
					    .who = *who};

	if (!explain.on)
		return;
	quota_follow(who->tid);
	if (explain.triggered_count < TRIGGERED_MAX)
		explain.triggered[explain.triggered_count++] = candidate;
	else
		explain.too_many++;
}

/* Takes the triggers whose events after them have come. */
static void take_triggered(int64_t until_ns)
{
	unsigned int left = 0;

	for (unsigned int i = 0; i < explain.triggered_count; i++) {
		if (window_of(&explain.triggered[i]).to_ns <= until_ns)
			add_candidate(&explain.triggered[i]);
		else
			explain.triggered[left++] = explain.triggered[i];
	}
	explain.triggered_count = left;
}

void explain_open(explain_who who, const struct harness *h)
{
	if (!explain_options.instance)
		return;
	explain.who = who;
	explain.harness = h;
	explain.steals = steal_open();
	explain.awaits_quota = !strstr(explain_options.events, "timer"); /* else all are recorded */
	explain.budget.every_ns = explain_options.every_ns;
	explain.on = begin_tracing();
	if (!explain.on) {
		end_events();
		steal_close();
		return;
	}
	if (addresses_need_text(&explain.addresses))
		symbols_want(explain.symbols, explain.addresses.text = symbols_address("_stext"));
	series_taken = sample_taken;
}

void explain_announce(struct json *j)
{
	char format[TRACE_TEXT_MAX];
	const int *cpus;

	if (!explain_options.instance)
		return;
	if (!explain.on) {
		stream_mark(
			j, "not-explained", SEVERITY_NOTE, -1,
			"rtgauge cannot explain latencies, because it cannot record the kernel's events (%s)",
			explain.failure);
		return;
	}
	json_open(j, NULL, '{');
	json_str(j, "type", "trace_formats");
	json_str(j, "clock", "mono");
	json_open(j, "events", '{');
	for (unsigned int i = 0; i < explain.event_count; i++) {
		if (trace_event_format(explain.instance, explain.events[i], format))
			json_str(j, explain.events[i], format);
	}
	if (explain.stack)
		json_str(j, "ftrace/kernel_stack", explain.stack_format);
	json_close(j, '}');
	json_str(j, "header_page", explain.header_page);
	json_str(j, "header_event", explain.header_event);
	json_uint(j, "page_bytes", explain.page_size);
	json_uint(j, "cpus", ring_copy_cpus(&cpus));
	json_close(j, '}');
	json_line(j);
}

void explain_go(int64_t usual_ns)
{
	if (explain.on)
		explain_cost_begin(usual_ns, explain_options.cost_ns, switch_events);
}

int64_t explain_pause_ns(int64_t pause_ns)
{
	return explain.on && pause_ns > PAUSE_NS ? PAUSE_NS : pause_ns;
}

static bool overlaps(const struct ring_page *page, const struct ring_window *window)
{
	return page->first_ns <= window->to_ns && page->until_ns >= window->from_ns;
}

bool explain_hurries(int64_t now_ns)
{
	return explain.candidate_count > AT_ONCE / 4 || now_ns < explain.hurries_until_ns;
}

/* Returns whether the kernel overwrote events of the thread's own CPU between release and end. Of a longer
 * time than the rings usually hold, the events around the end are enough. */
static bool is_overwritten(const struct candidate *c, const struct ring_page *pages, unsigned int count)
{
	int64_t end_ns = c->release_ns + c->latency_ns;
	bool reached = false;

	for (unsigned int i = 0; i < count; i++) {
		if (pages[i].cpu != c->who.cpu)
			continue;
		if (pages[i].dropped && pages[i].first_ns > c->release_ns && pages[i].first_ns <= end_ns &&
		    c->latency_ns <= PAUSE_NS)
			return true;
		reached |= pages[i].first_ns <= end_ns && pages[i].until_ns >= end_ns;
	}
	return !reached;
}

/* Writes one CPU's pages that are in the window. */
static void write_pages(int cpu, const struct ring_window *window, const struct ring_page *pages,
			unsigned int count, struct json *j)
{
	char key[16];

	snprintf(key, sizeof(key), "%d", cpu);
	json_open(j, key, '[');
	for (unsigned int i = 0; i < count; i++) {
		if (pages[i].cpu != cpu || !overlaps(&pages[i], window))
			continue;
		json_base64(j, NULL, pages[i].bytes, pages[i].len);
		explain.budget.bytes += (int64_t)pages[i].len;
		addresses_collect(&explain.addresses, pages[i].bytes, pages[i].len, explain.data_offset,
				  explain.symbols);
	}
	json_close(j, ']');
}

static size_t bytes_of(int cpu, const struct ring_window *window, const struct ring_page *pages,
		       unsigned int count)
{
	size_t bytes = 0;

	for (unsigned int i = 0; i < count; i++) {
		if (pages[i].cpu == cpu && overlaps(&pages[i], window))
			bytes += pages[i].len / 3 * 4 + 8;
	}
	return bytes;
}

/* Writes the thread's own CPU first, then other CPUs as long as the line may grow. The line names the CPUs
 * that are left out. */
static void write_all_pages(const struct candidate *c, const struct ring_page *pages, unsigned int count,
			    struct json *j)
{
	struct ring_window window = window_of(c);
	size_t bytes = bytes_of(c->who.cpu, &window, pages, count);
	static bool left_out[CPUSET_MAX];
	const int *cpus;
	unsigned int cpu_count = ring_copy_cpus(&cpus);

	json_open(j, "pages", '{');
	write_pages(c->who.cpu, &window, pages, count, j);
	for (unsigned int i = 0; i < cpu_count; i++) {
		size_t more = bytes_of(cpus[i], &window, pages, count);

		left_out[i] = cpus[i] != c->who.cpu && bytes + more > MOMENT_BYTES_MAX;
		if (cpus[i] == c->who.cpu || left_out[i])
			continue;
		write_pages(cpus[i], &window, pages, count, j);
		bytes += more;
	}
	json_close(j, '}');
	json_open(j, "left_out", '[');
	for (unsigned int i = 0; i < cpu_count; i++) {
		if (left_out[i])
			json_int(j, NULL, cpus[i]);
	}
	json_close(j, ']');
}

/* Writes how many events in the window the kernel overwrote, for each CPU; -1: an unknown number. */
static void write_lost(const struct candidate *c, const struct ring_page *pages, unsigned int count,
		       struct json *j)
{
	struct ring_window window = window_of(c);

	json_open(j, "lost", '{');
	for (unsigned int i = 0; i < count;) {
		int64_t lost = 0, unknown = 0;
		int cpu = pages[i].cpu;
		char key[16];

		for (; i < count && pages[i].cpu == cpu; i++) {
			if (!pages[i].dropped || pages[i].first_ns <= window.from_ns ||
			    pages[i].first_ns > window.to_ns)
				continue;
			lost += pages[i].dropped_count;
			unknown += !pages[i].dropped_count;
		}
		snprintf(key, sizeof(key), "%d", cpu);
		if (lost || unknown)
			json_int(j, key, unknown ? -1 : lost);
	}
	json_close(j, '}');
}

/* Writes where the thread slept within the latency. */
static void write_held(const struct explained *who, struct json *j)
{
	json_open(j, "held", '[');
	for (unsigned int i = 0; i < who->held_count; i++) {
		json_open(j, NULL, '{');
		json_int(j, "since_ns", who->held[i].since_ns);
		json_str(j, "call", who->held[i].call);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* Returns the process of a thread; 0: the thread has ended. A signal for a program names its process. */
static pid_t process_of(pid_t tid)
{
	char path[64], line[256];
	long process = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	file = fopen(path, "re");
	while (file && !process && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Tgid:", strlen("Tgid:")))
			process = strtol(line + strlen("Tgid:"), NULL, 10);
	}
	if (file)
		fclose(file);
	return (pid_t)process;
}

static void write_moment(const struct candidate *c, const struct ring_page *pages, unsigned int count,
			 int64_t copy_ns, struct json *j)
{
	moment_budget_take(&explain.budget,
			   c->kind == KIND_ABOVE || c->kind == KIND_MAXIMUM ? c->latency_ns : 0,
			   c->release_ns + c->latency_ns);
	json_open(j, NULL, '{');
	json_str(j, "type", "moment");
	json_int(j, "number", explain.budget.moments);
	json_int(j, "cpu", c->who.cpu);
	json_uint(j, "series", c->series);
	json_int(j, "thread", c->who.tid);
	json_int(j, "process", process_of(c->who.tid));
	json_str(j, "kind", kinds[c->kind]);
	json_int(j, "release_ns", c->release_ns);
	json_int(j, "end_ns", c->release_ns + c->latency_ns);
	json_int(j, "latency_ns", c->latency_ns);
	if (c->who.timer_ns)
		json_int(j, "timer_ns", c->who.timer_ns);
	if (c->kind == KIND_TRIGGERED)
		json_int(j, "request", c->request);
	json_int(j, "copy_ns", copy_ns);
	if (explain.steals)
		steal_write("steal_ms", j);
	quota_write("throttled", c->who.tid, c->release_ns, j);
	json_bool(j, "quota_timers", explain.quota_since_ns && explain.quota_since_ns < c->release_ns);
	write_held(&c->who, j);
	write_lost(c, pages, count, j);
	write_all_pages(c, pages, count, j);
	json_close(j, '}');
	json_line(j);
}

void explain_take(struct json *j)
{
	struct ring_window windows[AT_ONCE];
	const struct ring_page *pages;
	int64_t began_ns, copy_ns;
	unsigned int count;

	if (!explain.on)
		return;
	explain_cost_turn();
	if (explain.steals)
		steal_look();
	quota_look(clock_now_ns(CLOCK_MONOTONIC));
	begin_quota_timers();
	take_triggered(clock_now_ns(CLOCK_MONOTONIC));
	if (!explain.candidate_count)
		return;
	for (unsigned int i = 0; i < explain.candidate_count; i++)
		windows[i] = window_of(&explain.candidates[i]);
	began_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (explain.shared)
		explain.rings.read(explain.rings.user);
	count = ring_copy_take(windows, explain.candidate_count, &pages);
	copy_ns = clock_now_ns(CLOCK_MONOTONIC) - began_ns;
	if (copy_ns > explain.copy_max_ns)
		explain.copy_max_ns = copy_ns;
	for (unsigned int i = 0; i < explain.candidate_count; i++) {
		const struct candidate *each = &explain.candidates[i];
		bool overwritten = each->kind != KIND_TRIGGERED && is_overwritten(each, pages, count);

		explain.overwritten += overwritten;
		if (overwritten)
			explain.hurries_until_ns = began_ns + HURRY_NS;
		else if (within_budget(&explain.candidates[i]))
			write_moment(&explain.candidates[i], pages, count, copy_ns, j);
		else
			explain.over_budget++;
	}
	explain.candidate_count = 0;
}

static void write_symbols(struct json *j)
{
	FILE *file = explain.symbols->count ? fopen("/proc/kallsyms", "re") : NULL;
	bool known;

	if (!file)
		return;
	known = symbols_read(explain.symbols, file);
	fclose(file);
	if (!known)
		return;
	json_open(j, NULL, '{');
	json_str(j, "type", "symbols");
	symbols_json(explain.symbols, "symbols", j);
	json_close(j, '}');
	json_line(j);
}

void explain_end(struct json *j)
{
	if (!explain.on)
		return;
	take_triggered(INT64_MAX); /* nothing more will come */
	explain_take(j);
	explain.on = false;
	series_taken = NULL;
	end_events();
	ring_copy_close();
	close(explain.own);
	steal_close();
	quota_close();
	explain_cost_write(j);
	write_symbols(j);
	stream_result(j, "explain");
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "moments", explain.budget.moments);
	json_int(j, "bytes", explain.budget.bytes);
	json_int(j, "overwritten", explain.overwritten);
	json_int(j, "over_budget", explain.over_budget);
	json_int(j, "too_many_at_once", explain.too_many);
	json_int(j, "events_off", explain.events_off);
	json_int(j, "copy_max_ns", explain.copy_max_ns);
	json_int(j, "buffer_kb", explain_options.buffer_kb);
	stream_result_end(j);
}
