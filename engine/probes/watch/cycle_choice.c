// SPDX-License-Identifier: MIT
#include "probes/watch/cycle_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME_PERIOD 0.1 /* a grid has the required period if it differs by less */
#define PLACES_MAX 4	/* more places are no property of the program's loop */
#define PLACE_SHARE 5	/* each place has at least 1/PLACE_SHARE of the waits */
#define LEAST_WAITS 2
#define LEAST_EQUAL 16 /* fewer waits are equally long only if they differ by less than FEW_EQUAL */
#define FEW_EQUAL 0.01
#define LEAST_SHARED 16
#define GAP_POINTS 5.0
#define ROUNDED_SHARE 0.95   /* of the expiries of a call that rounds its time-out */
#define TWIN_SHARE 0.6	     /* ... or that another wait of the same period has */
#define PAUSES_SHARE 0.9     /* ... of which fewer are equally long */
#define TWIN_WIDTH_NS 1000.0 /* ... whose expiries lie so close together after the points */
#define POINTS_SHARE 0.8     /* of the points of a grid that a call shares with other times */
#define PASSED_NS 5000	     /* a sleep for no time */
#define BEFORE_CALL_NS 20000 /* ... until a time that the program read so long before the call */
#define SAME_SLOPE_NS 100.0
#define PAUSE_NS 2000.0 /* sleeps for a fixed time differ by less */

bool cycle_waits_at(const struct cycle_candidate *candidate, const struct wait *wait)
{
	return candidate->call.number == wait->call.number && candidate->call.table == wait->call.table &&
	       (candidate->any_object || candidate->object == blocking_call_object(&wait->call)) &&
	       (!candidate->place || candidate->place == blocking_call_place(&wait->call));
}

/* Returns whether its own time-out ended the wait. */
static bool timed_out(const struct wait *wait)
{
	return wait->own.expiry_ns && wait->own.expiry_ns <= wait->exit_ns && !wait->interrupted &&
	       (wait->call.number < 0 || blocking_call_timed_out(&wait->call, wait->result));
}

bool cycle_sleeps_for_no_time(const struct wait *wait)
{
	return wait->own.expiry_ns && wait->own.expiry_ns <= wait->own.armed_ns + PASSED_NS &&
	       wait->own.expiry_ns >= wait->own.armed_ns - BEFORE_CALL_NS;
}

static bool is_for(const struct wait *wait, double sleep_ns)
{
	double tolerance_ns = sleep_ns / 100 > PAUSE_NS ? sleep_ns / 100 : PAUSE_NS;

	return wait->own.expiry_ns &&
	       fabs((double)(wait->own.expiry_ns - wait->own.armed_ns) - sleep_ns) <= tolerance_ns;
}

bool cycle_is_pause(const struct cycle_candidate *candidate, const struct wait *wait)
{
	return candidate->pause_ns > 0 && is_for(wait, candidate->pause_ns);
}

/* A signal handler's timer interrupts a sleep, which the program or the kernel then continues. */
static bool is_continued(const struct wait *wait)
{
	return wait->interrupted && wait->own.expiry_ns;
}

static bool woken_by_others(const struct wait *wait)
{
	bool broken_off = wait->interrupted && !blocking_call_waits_for_signal(&wait->call);

	return wait->slept && !broken_off && !timed_out(wait) && !wait->fired_count && wait->woken_ns;
}

int64_t cycle_release_ns(const struct cycle_candidate *candidate, const struct wait *wait)
{
	if (cycle_is_pause(candidate, wait))
		return 0;
	switch (candidate->source) {
	case SOURCE_TIME_OUT:
		return timed_out(wait) ? wait->own.expiry_ns : 0;
	case SOURCE_TIMER:
		for (unsigned int i = 0; i < wait->fired_count && !is_continued(wait); i++) {
			if (wait->fired[i].timer == candidate->timer)
				return wait->fired[i].expiry_ns;
		}
		return 0;
	case SOURCE_DATA:
		return woken_by_others(wait) ? wait->woken_ns : 0;
	}
	return 0;
}

int64_t cycle_ahead_ns(const struct cycle_candidate *candidate, const struct wait *wait)
{
	if (!candidate->wall)
		return 0;
	if (candidate->source == SOURCE_TIME_OUT)
		return wait->own.there_ns - wait->own.expiry_ns;
	for (unsigned int i = 0; i < wait->fired_count; i++) {
		if (wait->fired[i].timer == candidate->timer)
			return wait->fired[i].there_ns - wait->fired[i].expiry_ns;
	}
	return 0;
}

static struct cycle_candidate *find(struct cycle_choice *choice, const struct cycle_candidate *like)
{
	for (size_t i = 0; i < choice->count; i++) {
		struct cycle_candidate *candidate = &choice->candidates[i];

		if (candidate->call.number == like->call.number && candidate->object == like->object &&
		    candidate->place == like->place && candidate->source == like->source &&
		    candidate->timer == like->timer)
			return candidate;
	}
	if (choice->count == CANDIDATES_MAX)
		return NULL;
	choice->candidates[choice->count] = *like;
	return &choice->candidates[choice->count++];
}

static void count_wait(struct cycle_choice *choice, const struct wait *wait, enum cycle_source source,
		       uint64_t timer, bool wall)
{
	const struct cycle_candidate like = {.call = wait->call,
					     .object = blocking_call_object(&wait->call),
					     .source = source,
					     .timer = timer};
	struct cycle_candidate *candidate = find(choice, &like);

	if (!candidate)
		return;
	candidate->count++;
	candidate->slept_ns += wait->slept_ns;
	candidate->wall |= wall;
	candidate->lock |= blocking_call_lock(&wait->call) != NO_LOCK;
	candidate->storage |= blocking_call_is_storage(&wait->call);
}

static void collect(struct cycle_choice *choice, const struct wait *waits, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct wait *wait = &waits[i];

		if (timed_out(wait))
			count_wait(choice, wait, SOURCE_TIME_OUT, 0, wait->own.wall);
		for (unsigned int f = 0; f < wait->fired_count && !is_continued(wait); f++)
			count_wait(choice, wait, SOURCE_TIMER, wait->fired[f].timer, wait->fired[f].wall);
		if (woken_by_others(wait))
			count_wait(choice, wait, SOURCE_DATA, 0, false);
	}
}

/* Room for the values of one candidate's waits. */
struct room {
	int64_t *times_ns;
	double *values;
};

/* Writes the releases of the candidate in order, without repeated ones, and how long the thread slept for
 * each. passed: also sleeps for no time, which tell nothing about the grid. Returns how many. */
static size_t read_releases(const struct cycle_candidate *candidate, const struct wait *waits, size_t count,
			    bool passed, const struct room *room)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		const struct wait *wait = &waits[i];
		int64_t release_ns;

		if (!cycle_waits_at(candidate, wait))
			continue;
		release_ns = cycle_release_ns(candidate, wait);
		if (!release_ns ||
		    (found && release_ns + cycle_ahead_ns(candidate, wait) <= room->times_ns[found - 1]) ||
		    (!passed && candidate->source == SOURCE_TIME_OUT && cycle_sleeps_for_no_time(wait)))
			continue;
		room->values[found] = (double)(release_ns - wait->own.armed_ns);
		room->times_ns[found++] = release_ns + cycle_ahead_ns(candidate, wait);
	}
	return found;
}

/* Returns whether at least 99 % of the values are equal within the tolerance of a grid. Sets their median,
 * and the median deviation from it. */
static bool are_equal(double *values, size_t count, double *median, double *spread)
{
	size_t off = 0;

	*median = median_ns(values, count);
	for (size_t i = 0; i < count; i++) {
		values[i] = fabs(values[i] - *median);
		off += values[i] > (double)grid_tolerance_ns(*median > 0 ? *median : 0);
	}
	*spread = median_ns(values, count);
	return *median > 0 && (off * 100 <= count || (off == 1 && count >= 16));
}

static int by_length(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

static double interval_ns(const int64_t *times_ns, size_t count, double *room)
{
	for (size_t i = 1; i < count; i++)
		room[i - 1] = (double)(times_ns[i] - times_ns[i - 1]);
	return count > 1 ? median_ns(room, count - 1) : 0;
}

/* Fits a grid through the releases, which may begin anew now and then: a line through all of them then has
 * another slope than most steps. */
static bool fit(struct cycle_candidate *candidate, const int64_t *times_ns, size_t count)
{
	struct grid whole, steps;
	bool by_line = grid_fit(times_ns, count, &whole), by_steps = grid_fit_steps(times_ns, count, &steps);

	candidate->anew = by_steps && (!by_line || fabs(whole.period_ns - steps.period_ns) >
							   SAME_SLOPE_NS + 4 * steps.spread_ns);
	candidate->grid = candidate->anew ? steps : whole;
	return by_line || by_steps;
}

/* Returns whether there is a sleep for no time that is for no point of the grid: its program computes the
 * time left, and sleeps for no time if there is none. */
static bool has_late_sleep(const struct cycle_candidate *candidate, const struct wait *waits, size_t count)
{
	const struct grid *grid = &candidate->grid;

	for (size_t i = 0; i < count; i++) {
		const struct wait *wait = &waits[i];
		double from_ns =
			(double)(wait->own.expiry_ns + cycle_ahead_ns(candidate, wait) - grid->origin_ns);

		if (cycle_waits_at(candidate, wait) && cycle_release_ns(candidate, wait) &&
		    wait->own.expiry_ns > wait->own.armed_ns && cycle_sleeps_for_no_time(wait) &&
		    fabs(from_ns - round(from_ns / grid->period_ns) * grid->period_ns) >
			    (double)grid_tolerance_ns(grid->period_ns))
			return true;
	}
	return false;
}

/* Finds the kind by the expiries: flags and names of calls do not tell it. */
static void find_kind(struct cycle_candidate *candidate, const struct wait *waits, size_t count,
		      const struct room *room)
{
	size_t found = read_releases(candidate, waits, count, false, room);
	double sleep_spread_ns = 0;
	bool relative;

	if (found * 4 < candidate->count)
		found = read_releases(candidate, waits, count, true, room);
	relative = candidate->source == SOURCE_TIME_OUT &&
		   are_equal(room->values, found, &candidate->sleep_ns, &sleep_spread_ns);
	candidate->kind = CYCLE_OWN_SCHEDULE;
	candidate->interval_ns = interval_ns(room->times_ns, found, room->values);
	if (candidate->source == SOURCE_DATA)
		candidate->kind = CYCLE_DATA;
	else if (fit(candidate, room->times_ns, found) &&
		 (!relative || candidate->grid.spread_ns <= sleep_spread_ns))
		candidate->kind = CYCLE_PERIODIC;
	else if (relative && found >= LEAST_WAITS &&
		 (found >= LEAST_EQUAL || sleep_spread_ns <= FEW_EQUAL * candidate->sleep_ns))
		candidate->kind = CYCLE_RELATIVE;
	candidate->no_time = candidate->kind == CYCLE_PERIODIC && !candidate->anew &&
			     candidate->source == SOURCE_TIME_OUT && has_late_sleep(candidate, waits, count);
}

/* The waits that seem to be sleeps for a fixed time. */
struct pauses {
	size_t count;
	double spread_ns; /* median deviation of their lengths */
	bool on_grid;	  /* their expiries lie on a grid more exactly than they are equally long */
};

static struct pauses find_pauses(const struct cycle_candidate *candidate, double sleep_ns,
				 const struct wait *waits, size_t count, const struct room *room)
{
	struct pauses pauses = {0};
	struct grid grid;
	double median;

	for (size_t i = 0; i < count; i++) {
		if (!cycle_waits_at(candidate, &waits[i]) || !cycle_release_ns(candidate, &waits[i]) ||
		    !is_for(&waits[i], sleep_ns))
			continue;
		room->values[pauses.count] = (double)(waits[i].own.expiry_ns - waits[i].own.armed_ns);
		room->times_ns[pauses.count++] = waits[i].own.there_ns;
	}
	pauses.on_grid = grid_fit(room->times_ns, pauses.count, &grid);
	are_equal(room->values, pauses.count, &median, &pauses.spread_ns);
	pauses.on_grid = pauses.on_grid && grid.spread_ns <= pauses.spread_ns;
	return pauses;
}

/* Returns whether leaving out the pauses makes the candidate a loop on a grid that it is not with them. */
static bool is_better(const struct cycle_candidate *rest, const struct cycle_candidate *whole,
		      const struct pauses *pauses)
{
	if (rest->kind != CYCLE_PERIODIC)
		return false;
	if (whole->kind != CYCLE_PERIODIC)
		return true;
	/* Together they may seem to lie on a finer grid, but not as exactly as they are equally long. */
	return rest->grid.period_ns > 1.5 * whole->grid.period_ns &&
	       whole->grid.spread_ns > pauses->spread_ns;
}

/* A loop on a grid may also sleep for a fixed time in each cycle, in the same call. */
static void leave_out_pause(struct cycle_candidate *candidate, const struct wait *waits, size_t count,
			    const struct room *room)
{
	struct cycle_candidate rest = *candidate;

	if (candidate->source != SOURCE_TIME_OUT || candidate->kind == CYCLE_RELATIVE)
		return;
	for (size_t tenth = 1; tenth < 10; tenth++) {
		size_t found = read_releases(candidate, waits, count, true, room);
		struct pauses pauses;

		qsort(room->values, found, sizeof(*room->values), by_length);
		rest.pause_ns = room->values[found * tenth / 10];
		if (rest.pause_ns <= PASSED_NS)
			continue;
		pauses = find_pauses(candidate, rest.pause_ns, waits, count, room);
		if (pauses.count * PLACE_SHARE < found || (found - pauses.count) * PLACE_SHARE < found)
			continue;
		rest.count = found - pauses.count;
		find_kind(&rest, waits, count, room);
		rest.twin = pauses.on_grid;
		if (is_better(&rest, candidate, &pauses)) {
			*candidate = rest;
			return;
		}
	}
}

/* Lists the places in memory of the candidate's times to sleep. Returns how many; more than PLACES_MAX:
 * too many. */
static size_t list_places(const struct cycle_candidate *candidate, const struct wait *waits, size_t count,
			  uint64_t places[PLACES_MAX], size_t counts[PLACES_MAX])
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t place = blocking_call_place(&waits[i].call);
		size_t at = 0;

		if (!cycle_waits_at(candidate, &waits[i]) || !cycle_release_ns(candidate, &waits[i]))
			continue;
		while (at < found && places[at] != place)
			at++;
		if (at == found) {
			if (found == PLACES_MAX)
				return PLACES_MAX + 1;
			places[found] = place;
			counts[found++] = 0;
		}
		counts[at]++;
	}
	return found;
}

/* Two sleeps of one loop are two candidates if each has a grid or a length of its own. */
static void split_by_place(struct cycle_choice *choice, size_t which, const struct wait *waits, size_t count,
			   const struct room *room)
{
	struct cycle_candidate *whole = &choice->candidates[which], parts[PLACES_MAX];
	uint64_t places[PLACES_MAX];
	size_t counts[PLACES_MAX], found = list_places(whole, waits, count, places, counts);

	if (whole->source != SOURCE_TIME_OUT || found < 2 || found > PLACES_MAX ||
	    choice->count + found - 1 > CANDIDATES_MAX)
		return;
	for (size_t i = 0; i < found; i++) {
		if (!places[i] || counts[i] * PLACE_SHARE < whole->count)
			return;
		parts[i] = *whole;
		parts[i].place = places[i];
		parts[i].count = counts[i];
		parts[i].slept_ns = whole->slept_ns / (int64_t)found;
		find_kind(&parts[i], waits, count, room);
		if (parts[i].kind == CYCLE_OWN_SCHEDULE ||
		    (whole->kind == CYCLE_PERIODIC &&
		     (parts[i].kind != CYCLE_PERIODIC ||
		      parts[i].grid.period_ns < 1.5 * whole->grid.period_ns)))
			return;
	}
	choice->candidates[which] = parts[0];
	for (size_t i = 1; i < found; i++)
		choice->candidates[choice->count++] = parts[i];
}

static double period_ns(const struct cycle_candidate *candidate)
{
	return candidate->kind == CYCLE_PERIODIC ? candidate->grid.period_ns : candidate->interval_ns;
}

static bool has_period(const struct cycle_candidate *candidate, int64_t wanted_ns)
{
	return fabs(period_ns(candidate) - (double)wanted_ns) <= SAME_PERIOD * (double)wanted_ns;
}

/* Returns how many of these phases, in ascending order and cyclic with the period, lie within twice the
 * tolerance after the phase at `from`. */
static size_t in_cluster(const double *phases, size_t count, size_t from, double period_ns, double width_ns)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		double after_ns = phases[(from + i) % count] - phases[from];

		after_ns += after_ns < 0 ? period_ns : 0;
		if (after_ns > width_ns)
			break;
		found++;
	}
	return found;
}

/* Replaces the values by the phases of the times in the period, in ascending order. Returns where most of
 * them begin to lie within width_ns. */
static size_t find_cluster(const struct room *room, size_t count, double period_ns, double width_ns,
			   size_t *most)
{
	size_t at = 0;

	*most = 0;
	for (size_t i = 0; i < count; i++)
		room->values[i] = fmod((double)(room->times_ns[i] - room->times_ns[0]), period_ns);
	qsort(room->values, count, sizeof(*room->values), by_length);
	for (size_t i = 0; i < count; i++) {
		size_t cluster = in_cluster(room->values, count, i, period_ns, width_ns);

		if (cluster > *most) {
			*most = cluster;
			at = i;
		}
	}
	return at;
}

/* Returns how many of the phases lie within width_ns, further than apart_ns from the phase `at`. */
static size_t second_cluster(const struct room *room, size_t count, size_t at, double period_ns,
			     double width_ns, double apart_ns)
{
	size_t second = 0;

	for (size_t i = 0; i < count; i++) {
		double from_ns = fabs(room->values[i] - room->values[at]);
		size_t cluster = in_cluster(room->values, count, i, period_ns, width_ns);

		if (fmin(from_ns, period_ns - from_ns) > apart_ns && cluster > second)
			second = cluster;
	}
	return second;
}

/* Returns how many points of a grid lie between the first and the last time, without longer gaps, in which
 * events were not recorded. */
static double points_in(const int64_t *times_ns, size_t count, double period_ns)
{
	double points = 0;

	for (size_t i = 1; i < count; i++)
		points += fmin((double)(times_ns[i] - times_ns[i - 1]) / period_ns, GAP_POINTS);
	return points;
}

/* Expiries that a call shares with another grid may come close to the points of this one. */
static double shared_tolerance_ns(double period_ns)
{
	return fmin((double)grid_tolerance_ns(period_ns), period_ns / 16);
}

double cycle_tolerance_ns(const struct cycle_candidate *candidate)
{
	double period_ns = candidate->grid.period_ns;

	return candidate->shared ? shared_tolerance_ns(period_ns) : (double)grid_tolerance_ns(period_ns);
}

/* A call may wait for the points of several grids, as in an executor with several timers. Returns whether the
 * expiries have all points of a grid with this period; the candidate is then only what lies on it. */
static bool find_shared_grid(struct cycle_candidate *candidate, double wanted_ns, const struct wait *waits,
			     size_t count, const struct room *room)
{
	size_t found = read_releases(candidate, waits, count, true, room), most, at, second;
	double width_ns = 2 * shared_tolerance_ns(wanted_ns), points;

	if (candidate->source == SOURCE_DATA || candidate->kind == CYCLE_RELATIVE || found < LEAST_SHARED)
		return false;
	points = points_in(room->times_ns, found, wanted_ns);
	at = find_cluster(room, found, wanted_ns, width_ns, &most);
	if ((double)most < POINTS_SHARE * points)
		return false;
	second = second_cluster(room, found, at, wanted_ns, width_ns, width_ns);
	candidate->kind = CYCLE_PERIODIC;
	candidate->shared = true;
	candidate->twin |= (double)second >= TWIN_SHARE * points;
	candidate->count = most;
	candidate->grid = (struct grid){
		.origin_ns = room->times_ns[0] + (int64_t)room->values[(at + most / 2) % found],
		.period_ns = wanted_ns,
	};
	return true;
}

/* Returns whether the loop waits twice for each point. It may be late for most of the second waits, which
 * then look like sleeps for no time, or as long as pauses, but all end equally long after the points. */
static bool has_twin(const struct cycle_candidate *candidate, const struct wait *waits, size_t count,
		     const struct room *room)
{
	struct cycle_candidate whole = *candidate;
	double period_ns = candidate->grid.period_ns;
	size_t found, most, at, second, pauses = 0;

	whole.pause_ns = 0;
	found = read_releases(&whole, waits, count, true, room);
	if (candidate->source != SOURCE_TIME_OUT || found < LEAST_SHARED)
		return false;
	at = find_cluster(room, found, period_ns, TWIN_WIDTH_NS, &most);
	second = second_cluster(room, found, at, period_ns, TWIN_WIDTH_NS,
				(double)grid_tolerance_ns(period_ns));
	for (size_t i = 0; i < count; i++)
		pauses += cycle_waits_at(candidate, &waits[i]) && cycle_release_ns(&whole, &waits[i]) &&
			  cycle_is_pause(candidate, &waits[i]);
	return (double)second >= TWIN_SHARE * points_in(room->times_ns, found, period_ns) &&
	       (double)pauses < PAUSES_SHARE * (double)second;
}

/* A call that rounds its time-out up to whole milliseconds waits for the points of a grid, or longer. Sets
 * the grid with this period. If the rounding hides the points, another wait may as well begin the cycle.
 * Returns false if the candidate does not round. */
static bool find_rounded_grid(struct cycle_candidate *candidate, double wanted_ns, const struct wait *waits,
			      size_t count, const struct room *room)
{
	size_t found, most, at;
	int64_t rounds_ns = blocking_call_rounds_ns(&candidate->call);
	double width_ns = (double)(rounds_ns + grid_tolerance_ns(wanted_ns));

	if (candidate->source != SOURCE_TIME_OUT || !rounds_ns)
		return false;
	if (candidate->kind == CYCLE_RELATIVE) { /* rounded times to its points are as equal */
		candidate->hidden = fabs(candidate->interval_ns - wanted_ns) < width_ns;
		return true;
	}
	found = read_releases(candidate, waits, count, false, room);
	at = find_cluster(room, found, wanted_ns, width_ns, &most);
	candidate->hidden = wanted_ns < 2 * width_ns || found < LEAST_SHARED ||
			    (double)most < ROUNDED_SHARE * (double)found;
	if (candidate->hidden)
		return true;
	candidate->kind = CYCLE_PERIODIC;
	candidate->anew = false;
	candidate->rounded_ns = rounds_ns;
	candidate->grid = (struct grid){
		.origin_ns = room->times_ns[0] + (int64_t)room->values[at],
		.period_ns = wanted_ns,
	};
	return true;
}

/* Some programs take another futex for each wait: together their time-outs may lie on one grid. */
static void join_futexes(struct cycle_choice *choice, const struct wait *waits, size_t count,
			 const struct room *room)
{
	struct cycle_candidate joint = {.any_object = true, .source = SOURCE_TIME_OUT};
	size_t kept = 0;
	int parts = 0;

	for (size_t i = 0; i < choice->count; i++) {
		const struct cycle_candidate *part = &choice->candidates[i];

		if (part->source != SOURCE_TIME_OUT || !blocking_call_is_futex(&part->call))
			continue;
		if (part->kind == CYCLE_PERIODIC && !part->anew && part->count * 2 > count)
			return;
		joint.call = part->call;
		joint.count += part->count;
		joint.slept_ns += part->slept_ns;
		joint.wall |= part->wall;
		parts++;
	}
	if (parts < 2)
		return;
	find_kind(&joint, waits, count, room);
	if (joint.kind != CYCLE_PERIODIC || joint.anew)
		return;
	for (size_t i = 0; i < choice->count; i++) {
		const struct cycle_candidate *part = &choice->candidates[i];

		if (part->source != SOURCE_TIME_OUT || !blocking_call_is_futex(&part->call))
			choice->candidates[kept++] = *part;
	}
	choice->candidates[kept++] = joint;
	choice->count = kept;
}

typedef bool (*criterion)(const struct cycle_candidate *candidate, const struct cycle_wish *wish);

static bool is_wished(const struct cycle_candidate *candidate, const struct cycle_wish *wish)
{
	return wish->call >= 0 && candidate->call.number == wish->call &&
	       (wish->fd < 0 || blocking_call_fd(&candidate->call) == wish->fd);
}

static bool has_wished_grid(const struct cycle_candidate *candidate, const struct cycle_wish *wish)
{
	return wish->period_ns && candidate->kind == CYCLE_PERIODIC && has_period(candidate, wish->period_ns);
}

static bool has_grid(const struct cycle_candidate *candidate, const struct cycle_wish *wish)
{
	(void)wish;
	return candidate->kind == CYCLE_PERIODIC;
}

static bool is_timed(const struct cycle_candidate *candidate, const struct cycle_wish *wish)
{
	(void)wish;
	return candidate->source != SOURCE_DATA;
}

static bool is_event(const struct cycle_candidate *candidate, const struct cycle_wish *wish)
{
	(void)wish;
	return candidate->source == SOURCE_DATA && !candidate->lock && !candidate->storage;
}

/* Applies a criterion: returns whether it finds a candidate. Those that are much rarer do not compete. */
static bool find_by(struct cycle_choice *choice, const struct cycle_wish *wish, criterion fits)
{
	size_t most = 0, competing = 0;

	for (size_t i = 0; i < choice->count; i++) {
		if (fits(&choice->candidates[i], wish) && choice->candidates[i].count > most) {
			most = choice->candidates[i].count;
			choice->chosen = (int)i;
		}
	}
	for (size_t i = 0; i < choice->count; i++)
		competing +=
			fits(&choice->candidates[i], wish) && choice->candidates[i].count * CYCLE_RARE > most;
	choice->unclear = competing > 1;
	return most > 0;
}

bool cycle_choose(const struct wait *waits, size_t count, const struct cycle_wish *wish,
		  struct cycle_choice *choice)
{
	static const criterion order[] = {has_wished_grid, has_grid, is_timed, is_event};
	struct room room = {.times_ns = malloc((count + 1) * sizeof(int64_t)),
			    .values = malloc((count + 1) * sizeof(double))};
	size_t found;

	*choice = (struct cycle_choice){.chosen = -1};
	if (room.times_ns && room.values) {
		collect(choice, waits, count);
		found = choice->count;
		for (size_t i = 0; i < found; i++) {
			find_kind(&choice->candidates[i], waits, count, &room);
			leave_out_pause(&choice->candidates[i], waits, count, &room);
			split_by_place(choice, i, waits, count, &room);
		}
		join_futexes(choice, waits, count, &room);
		for (size_t i = 0; wish->period_ns && i < choice->count; i++) {
			struct cycle_candidate *candidate = &choice->candidates[i];

			if (find_rounded_grid(candidate, (double)wish->period_ns, waits, count, &room))
				continue;
			if (!has_wished_grid(candidate, wish))
				find_shared_grid(candidate, (double)wish->period_ns, waits, count, &room);
			if (has_wished_grid(candidate, wish))
				candidate->twin |= has_twin(candidate, waits, count, &room);
		}
		if (find_by(choice, wish, is_wished)) {
			choice->unclear = false;
			choice->candidates[choice->chosen].twin = false;
		} else
			for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
				if (find_by(choice, wish, order[i]))
					break;
			}
	}
	if (choice->chosen >= 0)
		choice->unclear |=
			choice->candidates[choice->chosen].twin || choice->candidates[choice->chosen].hidden;
	found = room.times_ns && room.values;
	free(room.times_ns);
	free(room.values);
	return found;
}
