// SPDX-License-Identifier: MIT
#include "ext/network/engine/device_clock.h"

#include <math.h>

#include "base/memory.h"

#define LEAST_CYCLES 200
#define SOUGHT 1024 /* cycles for the search; all of them refine it */
#define WIDTH 0.002 /* the clocks differ by at most this share: far more than two quartz clocks do */
#define FINENESS 4  /* steps of the search in the width of a peak */
#define MOST_PER_INTERVAL 4
/* Below these, another cause of slow or periodic delays may look the same. */
#define LEAST_CONCENTRATION 0.75
#define LEAST_WAITING_SHARE 0.8
#define LEAST_BEATS 1.5
#define POINTS 1024 /* of the circle */
#define TURN 6.283185307179586

bool device_clock_make(struct device_clock *d, int64_t interval_ns)
{
	*d = (struct device_clock){.cycles = memory_get(DEVICE_CYCLES * sizeof(*d->cycles)),
				   .interval_ns = interval_ns};
	return d->cycles != NULL;
}

void device_clock_take(struct device_clock *d, int64_t number, int64_t departed_ns, int64_t arrived_ns)
{
	if (d->count < DEVICE_CYCLES)
		d->cycles[d->count++] = (struct device_cycle){number, departed_ns, arrived_ns};
}

/* Times are relative to the first departure, to keep all digits. */
static double since(const struct device_clock *d, int64_t time_ns)
{
	return (double)(time_ns - d->cycles[0].departed_ns);
}

struct vector {
	double x, y;
};

/* Unit vectors. With sin() and cos() of the C library, the engine would be 100 KiB larger. */
static struct vector circle[POINTS];

static void draw_circle(void)
{
	const struct vector step = {0.99998117528260111, 0.0061358846491544753}; /* a turn / POINTS */

	circle[0] = (struct vector){1, 0};
	for (int i = 1; i < POINTS; i++)
		circle[i] = (struct vector){circle[i - 1].x * step.x - circle[i - 1].y * step.y,
					    circle[i - 1].x * step.y + circle[i - 1].y * step.x};
}

/* Returns the unit vector of an angle: the nearest point, and the tangent there. */
static struct vector direction(double turns)
{
	double at = (turns - floor(turns)) * POINTS, nearest = floor(at + 0.5);
	struct vector v = circle[(size_t)nearest % POINTS];
	double rest = (at - nearest) / POINTS * TURN;

	return (struct vector){v.x - v.y * rest, v.y + v.x * rest};
}

/* Returns the angle of a vector in turns. */
static double angle(struct vector v)
{
	double most = 0, along = 0;
	int nearest = 0;

	for (int i = 0; i < POINTS; i++) {
		along = v.x * circle[i].x + v.y * circle[i].y;
		if (along > most) {
			most = along;
			nearest = i;
		}
	}
	if (most <= 0)
		return 0;
	return (double)nearest / POINTS + (v.y * circle[nearest].x - v.x * circle[nearest].y) / most / TURN;
}

/* Returns the mean of the unit vectors of the arrivals' phases. Takes every stride-th arrival at most, at
 * irregular distances, so that no other frequency looks the same. */
static struct vector mean_vector(const struct device_clock *d, double per_ns, size_t stride)
{
	struct vector sum = {0, 0};
	uint32_t random = 1;
	size_t n = 0;

	for (size_t i = 0; i < d->count; i += stride) {
		size_t at = i;

		if (stride > 1) {
			random = random * 1664525 + 1013904223;
			at += (random >> 8) % stride;
			if (at >= d->count)
				break;
		}
		struct vector one = direction(since(d, d->cycles[at].arrived_ns) * per_ns);

		sum.x += one.x;
		sum.y += one.y;
		n++;
	}
	return (struct vector){sum.x / (double)n, sum.y / (double)n};
}

static double concentration(const struct device_clock *d, double per_ns, size_t stride)
{
	struct vector mean = mean_vector(d, per_ns, stride);

	return sqrt(mean.x * mean.x + mean.y * mean.y);
}

/* Returns the beats in this time, between a device of this frequency and our cycles. */
static double beats_of(const struct device_clock *d, double per_ns, int64_t per_interval, double length_ns)
{
	return fabs(per_ns - (double)per_interval / (double)d->interval_ns) * length_ns;
}

/* Climbs from a frequency to the top of its peak. */
static double top(const struct device_clock *d, double per_ns, double step, size_t stride, double *height)
{
	*height = concentration(d, per_ns, stride);
	for (; step * since(d, d->cycles[d->count - 1].arrived_ns) > 1e-3; step /= 2) {
		for (int sign = -1; sign <= 1; sign += 2) {
			double other = concentration(d, per_ns + sign * step, stride);

			if (other > *height) {
				*height = other;
				per_ns += sign * step;
				break;
			}
		}
	}
	return per_ns;
}

/* Looks near one nominal frequency, but not so near that the loops did not slip once. */
static void search(const struct device_clock *d, int64_t per_interval, double length_ns,
		   struct device_period *best)
{
	double middle = (double)per_interval / (double)d->interval_ns;
	double step = 1 / length_ns / FINENESS, peak = 0, height = 0;
	size_t stride = (d->count + SOUGHT - 1) / SOUGHT;

	for (int64_t i = -(int64_t)(WIDTH * middle / step); (double)i * step <= WIDTH * middle; i++) {
		double per_ns = middle + (double)i * step;
		double here;

		if (beats_of(d, per_ns, per_interval, length_ns) < 1)
			continue;
		here = concentration(d, per_ns, stride);
		if (here > height) {
			height = here;
			peak = per_ns;
		}
	}
	if (height <= 0)
		return;
	peak = top(d, peak, step / 2, stride, &height);
	/* The grid of a period contains the grids of its parts, so a finer one must fit clearly better. */
	if (height > best->concentration + 0.05) {
		best->concentration = height;
		best->period_ns = 1 / peak;
		best->per_interval = per_interval;
		best->beats = beats_of(d, peak, per_interval, length_ns);
	}
}

/* Returns the shortest response, in periods: the way there and back, without a wait for the device. */
static double shortest(const struct device_clock *d, double per_ns)
{
	int64_t least_ns = INT64_MAX;

	for (size_t i = 0; i < d->count; i++) {
		int64_t response_ns = d->cycles[i].arrived_ns - d->cycles[i].departed_ns;

		if (response_ns < least_ns)
			least_ns = response_ns;
	}
	return (double)least_ns * per_ns;
}

/* Compares each response with the wait for the next point of the grid. mean: the phase of the grid. */
static double waiting_share(const struct device_clock *d, double per_ns, double mean)
{
	double least = shortest(d, per_ns);
	size_t explained = 0;

	for (size_t i = 0; i < d->count; i++) {
		const struct device_cycle *c = &d->cycles[i];
		double ready = since(d, c->departed_ns) * per_ns + least - mean;
		double wait = ceil(ready) - ready;

		explained += fabs((double)(c->arrived_ns - c->departed_ns) * per_ns - least - wait) <= 0.25;
	}
	return (double)explained / (double)d->count;
}

/* Returns how many periods the device was ahead of our cycles when it answered this one. */
static int64_t ahead(const struct device_clock *d, const struct device_period *found, double mean, size_t i)
{
	const struct device_cycle *c = &d->cycles[i];

	return llround(since(d, c->arrived_ns) / found->period_ns - mean) - found->per_interval * c->number;
}

/* A slip lasts: the next two answers have slipped, too. A single answer may just be late. */
static void find_slips(const struct device_clock *d, struct device_period *found, double mean)
{
	int64_t sign = found->period_ns * (double)found->per_interval < (double)d->interval_ns ? 1 : -1;
	int64_t reached = sign * ahead(d, found, mean, 0);

	for (size_t i = 1; i + 2 < d->count; i++) {
		int64_t now = INT64_MAX;

		for (size_t k = i; k < i + 3; k++) {
			int64_t one = sign * ahead(d, found, mean, k);

			if (one < now)
				now = one;
		}
		for (; reached < now; reached++) {
			if (found->slip_count < DEVICE_SLIPS)
				found->slips[found->slip_count] = d->cycles[i].number;
			found->slip_count++;
		}
	}
}

/* Lays all beats over each other. */
static void divide_beats(const struct device_clock *d, struct device_period *found)
{
	found->beat_cycles =
		1 / beats_of(d, 1 / found->period_ns, found->per_interval, (double)d->interval_ns);
	for (size_t i = 0; found->slip_count && i < d->count; i++) {
		const struct device_cycle *c = &d->cycles[i];
		double beats = (double)(c->number - found->slips[0]) / found->beat_cycles;
		struct beat_part *part =
			&found->parts[(size_t)((beats - floor(beats)) * BEAT_PARTS) % BEAT_PARTS];
		int64_t took_ns = c->arrived_ns - c->departed_ns;

		if (!part->count || took_ns < part->min_ns)
			part->min_ns = took_ns;
		if (!part->count || took_ns > part->max_ns)
			part->max_ns = took_ns;
		part->count++;
		part->sum_ns += took_ns;
	}
}

bool device_clock_find(const struct device_clock *d, struct device_period *found)
{
	double length_ns, mean, per_ns;

	*found = (struct device_period){.cycles = (int64_t)d->count};
	if (d->count < LEAST_CYCLES)
		return false;
	draw_circle();
	length_ns = since(d, d->cycles[d->count - 1].departed_ns);
	for (int64_t per_interval = 1; per_interval <= MOST_PER_INTERVAL; per_interval++)
		search(d, per_interval, length_ns, found);
	if (found->concentration < LEAST_CONCENTRATION || found->beats < LEAST_BEATS)
		return false;
	per_ns = top(d, 1 / found->period_ns, 0.1 / length_ns, 1, &found->concentration);
	found->period_ns = 1 / per_ns;
	found->beats = beats_of(d, per_ns, found->per_interval, length_ns);
	mean = angle(mean_vector(d, per_ns, 1));
	found->waiting_share = waiting_share(d, per_ns, mean);
	find_slips(d, found, mean);
	divide_beats(d, found);
	return found->waiting_share >= LEAST_WAITING_SHARE;
}
