// SPDX-License-Identifier: MIT
/*
 * response: a master makes an edge on a line, a slave answers it with one of its own; from stimulus to answer
 * (paper rows B2 and A1; Brown & Martin 2010, sec. 2.2 and 3.4; Adam et al. 2021, algorithm A1).
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/series.h"
#include "base/stream.h"
#include "base/tracefs.h"
#include "frame/frame.h"
#include "frame/partner.h"
#include "paths/parts.h"
#include "paths/path.h"
#include "paths/roles.h"
#include "paths/slave.h"
#include "rt/clock.h"
#include "rt/memory.h"
#include "verbs.h"

#define ROOM 16384
#define NOTE_TRIES 20
#define LEAD_NS (NS_PER_S / 50)
#define DRAIN_MOST_NS (NS_PER_S / 20)
#define ALONE_STIMULI 10 /* after so many lost ones, or so long, and no answer ever: nobody is there */
#define ALONE_NS (3 * NS_PER_S)
#define LOST INT64_C(-1)
#define STOPPED INT64_C(-2)

static struct {
	const char *trace_instance;
	int64_t interval_ns, interval_min_ns, interval_max_ns, timeout_ns, seed;
} wanted = {
	.interval_min_ns = 3000,
	.interval_max_ns = 7071000,
	.timeout_ns = NS_PER_S / 10,
	.seed = -1,
};

static const struct option_entry table[] = {
	ROLES_OPTION_PATH,
	ROLES_OPTION_ROLE("of this engine"),
	{.name = "interval-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.interval_ns,
	 .min = 0,
	 .max = 3600 * NS_PER_S,
	 .help = "from one stimulus to the next; 0: drawn at random"},
	{.name = "interval-min-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.interval_min_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "from an answer to the next stimulus, drawn: from (3000)"},
	{.name = "interval-max-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.interval_max_ns,
	 .min = 1,
	 .max = 3600 * NS_PER_S,
	 .help = "to (7071000)"},
	{.name = "timeout-ns",
	 .kind = OPTION_INT,
	 .value = &wanted.timeout_ns,
	 .min = 1000000,
	 .max = 3600 * NS_PER_S,
	 .help = "after which an answer is lost (100000000)"},
	{.name = "seed",
	 .kind = OPTION_INT,
	 .value = &wanted.seed,
	 .min = -1,
	 .max = INT64_MAX,
	 .help = "of the intervals that are drawn; -1: any"},
	{.name = "trace-instance",
	 .kind = OPTION_TEXT,
	 .value = &wanted.trace_instance,
	 .help = "take the response apart by tracepoints, in this instance of tracefs"},
	FRAME_OPTION_CPU,
	ROLES_OPTION_SLAVE_CPU,
	FRAME_OPTIONS_MEASURING("stimuli in the measured phase, in place of a duration"),
};

/* What a stimulus leaves. */
struct sample {
	int64_t sent_ns, back_ns; /* back_ns LOST: no answer came */
	int64_t skipped, first_skipped_ns;
};

struct counts {
	int64_t stimuli, answers, lost, skipped, early, doubled, late;
};

static struct {
	/* the master's own */
	_Alignas(CACHE_LINE) struct ring ring; /* of indices of slots, of which there are twice as many */
	struct sample *slots;
	size_t next_slot;
	uint64_t random;
	int64_t number;	  /* of the last stimulus; the first is 1 */
	int64_t answered; /* the last that was answered */
	int64_t owed;	  /* lost ones whose late answers would have no number */
	bool measuring, nobody;
	int error;
	struct counts counts[2]; /* warm-up, measured */
	int64_t not_kept;

	/* shared with the drain */
	_Alignas(CACHE_LINE) _Atomic int64_t waiting_ns; /* the stimulus that is waited for; 0: none is */
	_Atomic int64_t given_up_ns;

	/* constant */
	int64_t start_ns, measured_ns, end_ns;
	struct path_end *end;
	struct frame_thread thread;
} master;

static struct path_end ends[2];
static struct partner partner;
static struct slave *slave;
static struct series *series;
static struct parts parts;
static struct series *all_series[1 + PARTS];
static struct frame_thread *threads[1];
static struct frame_thread *measurers[1 + PARTS];
static char died[96];

static struct counts *counted(void)
{
	return &master.counts[master.measuring];
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
static uint64_t next_random(void)
{
	uint64_t z = master.random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static int64_t draw_interval(void)
{
	return wanted.interval_min_ns +
	       (int64_t)(next_random() % (uint64_t)(wanted.interval_max_ns - wanted.interval_min_ns + 1));
}

/* An edge that is not the answer to the stimulus that is waited for, or came while none was. */
static __attribute__((noinline)) void count_noise(const struct edge *edge, int64_t waited_for)
{
	struct counts *c = counted();

	c->doubled += edge->count - 1;
	if (edge->number == EDGE_UNNUMBERED && master.owed) {
		master.owed--;
		c->late++;
	} else if (edge->number == EDGE_UNNUMBERED || edge->number >= waited_for) {
		c->early++;
	} else if (edge->number > master.answered) {
		c->late++;
	} else {
		c->doubled++;
	}
}

/* Until it is due; what comes meanwhile is noise. false: told to stop. */
static bool wait_gap(int64_t due_ns)
{
	struct pollfd in = {.fd = master.end->in, .events = POLLIN};
	struct edge edge;

	for (;;) {
		int64_t left_ns = due_ns - clock_now_ns(CLOCK_MONOTONIC);
		struct timespec left = ns_timespec(left_ns > 0 ? left_ns : 0);
		int ready = ppoll(&in, 1, &left, NULL);

		if (atomic_load_explicit(&frame_shared.stop, memory_order_relaxed))
			return false;
		if (ready > 0 && !master.end->kind->receive(master.end, &edge))
			count_noise(&edge, master.number + 1);
		else if (ready == 0)
			return true;
	}
}

/* The answer did not come at once as it should. back_ns, or LOST, or STOPPED; 0: go on to wait. */
static __attribute__((noinline)) int64_t look_closer(int error, int64_t sent_ns)
{
	if (error == EINTR) {
		if (atomic_load(&frame_shared.stop))
			return STOPPED;
		return atomic_load(&master.given_up_ns) == sent_ns ? LOST : 0;
	}
	if (error == ECONNREFUSED)
		return 0;
	master.error = error;
	return STOPPED;
}

/* The measured path: read the clock, make an edge, wait for one, read the clock. */
static int64_t stimulate(int64_t *sent_ns)
{
	struct path_end *end = master.end;
	const struct path_kind *kind = end->kind;
	int64_t back_ns = 0, number = ++master.number;
	struct edge edge;
	int error;

	*sent_ns = clock_now_ns(CLOCK_MONOTONIC);
	atomic_store_explicit(&master.waiting_ns, *sent_ns, memory_order_relaxed);
	error = kind->send(end, number);
	while (!back_ns) {
		if (!error)
			error = kind->receive(end, &edge);
		back_ns = clock_now_ns(CLOCK_MONOTONIC);
		if (__builtin_expect(error != 0, 0)) {
			back_ns = look_closer(error, *sent_ns);
			error = 0;
		} else if (__builtin_expect(edge.number != number && edge.number != EDGE_UNNUMBERED, 0)) {
			count_noise(&edge, number + 1);
			back_ns = 0;
		}
	}
	atomic_store_explicit(&master.waiting_ns, 0, memory_order_relaxed);
	if (back_ns < 0)
		return back_ns;
	counted()->doubled += edge.count - 1;
	return kind->stamped ? edge.time_ns : back_ns;
}

static void keep(const struct sample *sample)
{
	size_t slot = master.next_slot & (2 * ROOM - 1);

	master.slots[slot] = *sample;
	if (ring_push(&master.ring, (int64_t)slot))
		master.next_slot++;
	else
		master.not_kept++;
}

/* false: nobody ever answered, and it was waited long enough. */
static bool somebody_there(int64_t now_ns)
{
	if (master.answered || (master.number < ALONE_STIMULI && now_ns - master.start_ns < ALONE_NS))
		return true;
	master.nobody = true;
	return false;
}

static void begin_measuring(void)
{
	usage_read(master.thread.schedstat, &master.thread.before);
	master.thread.usage_known = true;
	master.measuring = true;
}

/* How many of the skipped stimuli were due before this time. */
static int64_t skipped_before(const struct sample *sample, int64_t time_ns)
{
	if (time_ns <= sample->first_skipped_ns)
		return 0;
	if (time_ns >= sample->first_skipped_ns + sample->skipped * wanted.interval_ns)
		return sample->skipped;
	return (time_ns - sample->first_skipped_ns - 1) / wanted.interval_ns + 1;
}

/* The stimuli of a fixed interval whose time passed before this one was over; each is of the phase that it
 * was due in. */
static void skip(struct sample *sample, int64_t *due_ns, int64_t now_ns)
{
	int64_t in_warm_up;

	sample->first_skipped_ns = *due_ns;
	sample->skipped = now_ns > *due_ns ? (now_ns - *due_ns - 1) / wanted.interval_ns + 1 : 0;
	*due_ns += sample->skipped * wanted.interval_ns;
	in_warm_up = skipped_before(sample, master.measured_ns);
	master.counts[0].skipped += in_warm_up;
	master.counts[1].skipped += skipped_before(sample, master.end_ns) - in_warm_up;
}

static void drive(struct frame_thread *thread)
{
	int64_t due_ns = master.start_ns;

	while (wait_gap(due_ns)) {
		struct sample sample = {0};
		struct counts *c;
		int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);

		if (!master.measuring && now_ns >= master.measured_ns)
			begin_measuring();
		if (now_ns >= master.end_ns ||
		    (frame_wanted.count && master.counts[1].stimuli == frame_wanted.count))
			break;
		sample.back_ns = stimulate(&sample.sent_ns);
		if (sample.back_ns == STOPPED || sample.sent_ns >= master.end_ns)
			break;
		c = &master.counts[sample.sent_ns >= master.measured_ns];
		now_ns = sample.back_ns;
		c->stimuli++;
		if (sample.back_ns == LOST) {
			now_ns = clock_now_ns(CLOCK_MONOTONIC);
			c->lost++;
			master.owed++;
			if (!somebody_there(now_ns))
				break;
		} else {
			c->answers++;
			master.answered = master.number;
		}
		if (wanted.interval_ns) {
			due_ns += wanted.interval_ns;
			skip(&sample, &due_ns, now_ns);
		} else {
			due_ns = now_ns + draw_interval();
		}
		keep(&sample);
	}
	usage_read(thread->schedstat, &thread->after);
	/* So that a slave of its own on another machine ends too; it may not arrive. */
	if (master.end->kind == &path_udp && roles_wanted.role == PATH_MASTER)
		master.end->kind->send(master.end, EDGE_OVER);
}

static void feed(const struct sample *sample, struct json *j)
{
	if (sample->back_ns == LOST)
		series_miss_timed(series, sample->sent_ns, wanted.timeout_ns, j);
	else
		series_feed_timed(series, sample->sent_ns, sample->back_ns - sample->sent_ns, j);
	for (int64_t i = 0; i < sample->skipped; i++) {
		int64_t due_ns = sample->first_skipped_ns + i * wanted.interval_ns;
		int64_t over_ns = sample->first_skipped_ns + sample->skipped * wanted.interval_ns;

		series_miss_timed(series, due_ns, over_ns - due_ns, j);
	}
}

/* The slave's note of its answer to this stimulus. It writes it after the answer, so that it may still be
 * coming. false: there is none. */
static bool find_answer(const struct sample *sample, struct answer *answer)
{
	static struct answer held;
	int64_t slot;

	for (int tries = 0; held.woke_ns <= sample->sent_ns; tries++) {
		if (ring_pop(&slave->ring, &slot, 1)) {
			held = slave->slots[slot];
			continue;
		}
		if (tries == NOTE_TRIES)
			return false;
		clock_pause_ns(NS_PER_S / 1000);
	}
	*answer = held;
	return held.woke_ns < sample->back_ns;
}

static void take_apart(const struct sample *sample, struct json *j)
{
	struct answer answer;

	if (sample->back_ns == LOST)
		return;
	if (find_answer(sample, &answer))
		parts_feed(&parts, sample->sent_ns, answer.woke_ns, j);
	else
		parts.unmatched++;
}

/* An answer that is out for too long is given up. Again and again: a signal that comes just before the master
 * waits does not wake it. */
static void give_up(void)
{
	int64_t waiting_ns = atomic_load(&master.waiting_ns);

	if (!waiting_ns || clock_now_ns(CLOCK_MONOTONIC) - waiting_ns < wanted.timeout_ns)
		return;
	atomic_store(&master.given_up_ns, waiting_ns);
	if (!atomic_load(&master.thread.done))
		pthread_kill(master.thread.thread, SIGUSR1);
}

static struct frame frame;

static bool take_master(struct json *j)
{
	static int64_t slots[1024];
	bool done = atomic_load(&master.thread.done);
	size_t got;

	while ((got = ring_pop(&master.ring, slots, sizeof(slots) / sizeof(slots[0])))) {
		for (size_t i = 0; i < got; i++) {
			feed(&master.slots[slots[i]], j);
			if (wanted.trace_instance)
				take_apart(&master.slots[slots[i]], j);
		}
	}
	if (wanted.trace_instance)
		parts_take(&parts, done, j);
	give_up();
	if (roles_wanted.role == PATH_BOTH && !partner_lives(&partner, died, sizeof(died)))
		frame_end_by(&frame, "slave-died");
	return !done;
}

static int64_t measured_samples(void)
{
	return series->total.count + (series->measuring ? series->window.count : 0);
}

static bool take_slave(struct json *j)
{
	static int64_t slots[1024], before_ns;
	bool done = atomic_load(&master.thread.done);
	int64_t now_ns = clock_now_ns(CLOCK_MONOTONIC);
	size_t got;

	while ((got = ring_pop(&slave->ring, slots, sizeof(slots) / sizeof(slots[0])))) {
		for (size_t i = 0; i < got; i++) {
			const struct answer *a = &slave->slots[slots[i]];
			int64_t from_ns = a->edge_ns ? a->edge_ns : a->woke_ns;

			if (wanted.trace_instance && before_ns)
				parts_feed(&parts, before_ns, a->woke_ns, j);
			before_ns = a->answered_ns;

			series_feed_timed(series, from_ns, a->answered_ns - from_ns, j);
		}
	}
	if (wanted.trace_instance)
		parts_take(&parts, done, j);
	series->reached_ns = now_ns;
	if (!done && now_ns >= master.end_ns)
		frame_end_by(&frame, "duration");
	else if (!done && (atomic_load(&slave->over) ||
			   (frame_wanted.count && measured_samples() >= frame_wanted.count)))
		frame_end_by(&frame, "count");
	return !done;
}

static void answer_thread(struct frame_thread *thread)
{
	usage_read(thread->schedstat, &thread->before);
	slave_answer(slave);
	usage_read(thread->schedstat, &thread->after);
	thread->usage_known = true;
}

static void write_counts(struct json *j, const char *role)
{
	const struct counts *c = &master.counts[1];

	stream_result(j, "signal");
	json_str(j, "role", role);
	json_close(j, '}');
	json_open(j, "values", '{');
	json_int(j, "stimuli", c->stimuli);
	json_int(j, "answers", c->answers);
	json_int(j, "lost", c->lost);
	json_int(j, "skipped", c->skipped);
	json_int(j, "early-answer", c->early);
	json_int(j, "double-edge", c->doubled);
	json_int(j, "late-answer", c->late);
	stream_result_end(j);
}

static void conclude(struct json *j)
{
	if (wanted.trace_instance)
		parts_conclude(&parts, j);
	if (roles_wanted.role == PATH_SLAVE) {
		int64_t answers = atomic_load(&slave->answers);

		stream_result(j, "signal");
		json_str(j, "role", "slave");
		json_close(j, '}');
		json_open(j, "values", '{');
		json_int(j, "answers", answers);
		json_int(j, "double-edge", atomic_load(&slave->double_edges));
		stream_result_end(j);
		if (!answers)
			stream_mark(
				j, "no-stimulus", SEVERITY_INVALID, 0,
				"no stimulus came on %s: is the master running, and is its line this one?",
				roles_wanted.path);
		return;
	}
	write_counts(j, "master");
	if (died[0])
		stream_mark(j, "slave-died", SEVERITY_INVALID, -1, "the slave %s while it was needed", died);
	if (master.counts[1].early || master.counts[1].doubled)
		stream_mark(
			j, "noise", SEVERITY_DOUBTFUL, 0,
			"%" PRId64 " answers came before their stimulus and %" PRId64
			" stimuli had more than one answer: the line is noisy, or is somebody else's, too",
			master.counts[1].early, master.counts[1].doubled);
}

static int check(void)
{
	if (!wanted.interval_ns && wanted.interval_min_ns > wanted.interval_max_ns)
		return error_line(STATUS_USAGE, "interval",
				  "--interval-min-ns (%" PRId64 ") is longer than --interval-max-ns (%" PRId64
				  ")",
				  wanted.interval_min_ns, wanted.interval_max_ns);
	if (wanted.trace_instance && roles_wanted.role == PATH_MASTER)
		return error_line(STATUS_USAGE, "usage",
				  "--trace-instance is of the slave: --role slave or both");
	if (wanted.trace_instance && !tracefs_is_name(wanted.trace_instance))
		return error_line(STATUS_USAGE, "usage",
				  "--trace-instance %.80s: letters, digits, - and _, at most 64",
				  wanted.trace_instance);
	if (wanted.seed < 0) {
		uint64_t any = 0;

		if (getrandom(&any, sizeof(any), GRND_NONBLOCK) != (ssize_t)sizeof(any))
			any = (uint64_t)clock_now_ns(CLOCK_MONOTONIC);
		wanted.seed = (int64_t)(any >> 2);
	}
	return 0;
}

static int make(struct frame *f)
{
	int cpu[2], status = roles_cpus(f->cpus, cpu);
	bool alone = roles_wanted.role == PATH_SLAVE;
	int64_t *indices = memory_get(ROOM * sizeof(*indices));

	if (status)
		return status;
	master.slots = memory_get((size_t)2 * ROOM * sizeof(*master.slots));
	if (!indices || !master.slots)
		return frame_no_memory();
	ring_init(&master.ring, indices, ROOM);
	master.random = (uint64_t)wanted.seed;
	status = path_open(roles_wanted.path, (enum path_role)roles_wanted.role, true, ends);
	if (status)
		return status;
	master.end = &ends[PATH_MASTER];
	if (roles_wanted.role != PATH_MASTER) {
		slave = slave_new(&ends[PATH_SLAVE], alone || wanted.trace_instance);
		if (!slave)
			return frame_no_memory();
	}
	if (roles_wanted.role == PATH_BOTH)
		status = partner_start(&partner, cpu[PATH_SLAVE], slave_answer, slave);
	if (status)
		return status;
	master.thread.cpu = cpu[alone ? PATH_SLAVE : PATH_MASTER];
	master.thread.policy = (enum policy)frame_wanted.policy;
	master.thread.priority = (int)frame_wanted.priority;
	master.thread.measure = alone ? answer_thread : drive;
	all_series[0] = series = memory_get(sizeof(*series));
	if (!series)
		return frame_no_memory();
	series->metric = "response";
	series->cpu = master.thread.cpu;
	series->labels[0] = (struct label){"role", alone ? "slave" : "master"};
	if (alone)
		series->labels[1] = (struct label){
			"from", ends[PATH_SLAVE].kind->stamped ? "kernel-time-stamp" : "wake-up"};
	threads[0] = measurers[0] = &master.thread;
	return 0;
}

/* The slave is traced from before it is armed, so that nothing changes while it is measured. 0 or the exit
 * status. */
static int begin_trace(struct frame *f)
{
	bool both = roles_wanted.role == PATH_BOTH;
	int status;

	if (!wanted.trace_instance)
		return 0;
	if (!parts_choose(&parts, &ends[PATH_SLAVE], both, both ? partner.cpu : master.thread.cpu))
		return frame_no_memory();
	status = trace_open(wanted.trace_instance, both ? partner.pid : master.thread.tid, parts.interrupt);
	for (int i = 0; i < PARTS && !status; i++) {
		if (!parts.known[i])
			continue;
		parts.series[i].id = f->series_count;
		all_series[f->series_count++] = &parts.series[i];
	}
	return status;
}

static int run(struct frame *f)
{
	int64_t measured_ns = frame_wanted.duration_ns ? frame_wanted.duration_ns : INT64_MAX;
	int64_t pause_ns = wanted.timeout_ns / 4 < DRAIN_MOST_NS ? wanted.timeout_ns / 4 : DRAIN_MOST_NS;

	master.start_ns = clock_now_ns(CLOCK_MONOTONIC) + LEAD_NS;
	master.measured_ns = master.start_ns + frame_wanted.warm_up_ns;
	master.end_ns = measured_ns == INT64_MAX ? INT64_MAX : master.measured_ns + measured_ns;
	for (unsigned int i = 0; i < f->series_count; i++)
		series_timed(all_series[i], master.start_ns, frame_wanted.warm_up_ns, measured_ns);
	frame_go(f);
	frame_watch(f, measured_ns == INT64_MAX ? INT64_MAX : frame_wanted.warm_up_ns + measured_ns);
	frame_drain(f, roles_wanted.role == PATH_SLAVE ? take_slave : take_master, pause_ns);
	partner_end(&partner);
	if (wanted.trace_instance)
		trace_close();
	if (master.nobody && roles_wanted.role == PATH_BOTH)
		return error_line(STATUS_CANNOT_MEASURE, "no-answer",
				  "the slave on CPU %d never answered on %.100s: something of a higher "
				  "priority takes its CPU, or the lines are not wired together",
				  partner.cpu, roles_wanted.path);
	if (master.nobody)
		return error_line(STATUS_CANNOT_MEASURE, "no-answer",
				  "nobody answers on %.100s: start the slave first, with --role slave and "
				  "the same path",
				  roles_wanted.path);
	if (master.error || (slave && atomic_load(&slave->error)))
		return error_line(STATUS_CANNOT_MEASURE, "path", "%s failed while it was measured: %s",
				  roles_wanted.path,
				  strerror(master.error ? master.error : atomic_load(&slave->error)));
	series->lost =
		master.not_kept + (roles_wanted.role == PATH_SLAVE ? atomic_load(&slave->not_kept) : 0);
	return frame_finish(f, frame_wanted.count ? "count" : "duration");
}

static struct frame frame = {
	.name = "response",
	.table = table,
	.options = sizeof(table) / sizeof(table[0]),
	.check = check,
	.make = make,
	.started = begin_trace,
	.run = run,
	.conclude = conclude,
	.threads = threads,
	.thread_count = 1,
	.series = all_series,
	.series_count = 1,
	.measurers = measurers,
};

int verb_response(int argc, char **argv)
{
	int status = frame_run(&frame, argc, argv);

	partner_end(&partner);
	return status;
}
