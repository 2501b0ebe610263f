// SPDX-License-Identifier: MIT
#include "probes/watch/grid.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#define LEAST_TIMES 4
#define TOLERANCE_NS INT64_C(50000)
#define FITTED 2	    /* the grid's period and its phase are chosen by the times */
#define CHANCE 1e-5	    /* that as many random times lie on a grid as exactly */
#define FEW 16		    /* from this number of times on, one may lie elsewhere */
#define SAME_TIME_NS 5000.0 /* times farther apart are not both for one point */

int64_t grid_tolerance_ns(double period_ns)
{
	int64_t most_ns = (int64_t)(period_ns / 5);
	int64_t tolerance_ns = (int64_t)(period_ns / 100);

	tolerance_ns = tolerance_ns > TOLERANCE_NS ? tolerance_ns : TOLERANCE_NS;
	return tolerance_ns < most_ns ? tolerance_ns : most_ns;
}

static int by_value(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

double median_ns(double *values, size_t count)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

/* Numbers the times along the grid, and corrects the period on the way. Returns false if too few times
 * follow the one before by one period: then the period is too short or too long. */
static bool number_times(const int64_t *times_ns, size_t count, double *period_ns, double *numbers)
{
	size_t single = 0;

	numbers[0] = 0;
	for (size_t i = 1; i < count; i++) {
		double step = round((double)(times_ns[i] - times_ns[i - 1]) / *period_ns);

		numbers[i] = numbers[i - 1] + step;
		single += step == 1;
		if (numbers[i] > 0 && step == 1)
			*period_ns = (double)(times_ns[i] - times_ns[0]) / numbers[i];
	}
	return single * 4 >= count - 1;
}

/* Fits a line through the times that lie within reach_ns of the line before. Returns how many these are. */
static size_t fit_line(const int64_t *times_ns, const double *numbers, size_t count, double reach_ns,
		       double *at_ns, double *period_ns)
{
	double n = 0, sum_k = 0, sum_t = 0, sum_kk = 0, sum_kt = 0, spread;

	for (size_t i = 0; i < count; i++) {
		double k = numbers[i], t = (double)(times_ns[i] - times_ns[0]);

		if (fabs(t - (*at_ns + k * *period_ns)) > reach_ns)
			continue;
		n++;
		sum_k += k;
		sum_t += t;
		sum_kk += k * k;
		sum_kt += k * t;
	}
	spread = n * sum_kk - sum_k * sum_k;
	if (n < 2 || spread <= 0)
		return 0;
	*period_ns = (n * sum_kt - sum_k * sum_t) / spread;
	*at_ns = (sum_t - *period_ns * sum_k) / n;
	return (size_t)n;
}

static bool fits(const int64_t *times_ns, size_t count, double period_ns, double *room, struct grid *grid)
{
	double *numbers = room, *deviations = room + count, at_ns = 0, worst_ns = 0, tolerance_ns;
	size_t off = 0;

	if (!number_times(times_ns, count, &period_ns, numbers) || period_ns < 1)
		return false;
	/* The line may begin with a bad slope: come closer in steps. */
	for (int part = 1; part <= 16; part *= 2) {
		if (!fit_line(times_ns, numbers, count, 2 * period_ns / part, &at_ns, &period_ns))
			return false;
	}
	fit_line(times_ns, numbers, count, (double)grid_tolerance_ns(period_ns) * 2, &at_ns, &period_ns);
	tolerance_ns = (double)grid_tolerance_ns(period_ns);
	for (size_t i = 0; i < count; i++) {
		double error_ns =
			fabs((double)(times_ns[i] - times_ns[0]) - (at_ns + numbers[i] * period_ns));
		bool same_point = i && numbers[i] == numbers[i - 1] &&
				  (double)(times_ns[i] - times_ns[i - 1]) > SAME_TIME_NS;

		if (error_ns > tolerance_ns || same_point)
			off++;
		else if (error_ns > worst_ns)
			worst_ns = error_ns;
	}
	if ((off * 100 > count && !(off == 1 && count >= FEW)) ||
	    pow(2 * worst_ns / period_ns, (double)(count - FITTED)) > CHANCE)
		return false;
	for (size_t i = 1; i < count; i++)
		deviations[i - 1] = fabs((double)(times_ns[i] - times_ns[i - 1]) -
					 (numbers[i] - numbers[i - 1]) * period_ns);
	*grid = (struct grid){
		.origin_ns = times_ns[0] + (int64_t)llround(at_ns + numbers[count - 1] * period_ns),
		.period_ns = period_ns,
		.spread_ns = median_ns(deviations, count - 1),
	};
	return true;
}

bool grid_fit_steps(const int64_t *times_ns, size_t count, struct grid *grid)
{
	double *steps = count >= LEAST_TIMES ? malloc(count * sizeof(*steps)) : NULL, period_ns;
	size_t equal = 0, shorter = 0;

	if (!steps)
		return false;
	for (size_t i = 1; i < count; i++)
		steps[i - 1] = (double)(times_ns[i] - times_ns[i - 1]);
	period_ns = median_ns(steps, count - 1);
	for (size_t i = 1; i < count; i++) {
		double longer_ns = (double)(times_ns[i] - times_ns[i - 1]) - period_ns;

		equal += fabs(longer_ns) <= (double)grid_tolerance_ns(period_ns);
		shorter += longer_ns < -(double)grid_tolerance_ns(period_ns);
	}
	for (size_t i = 1; i < count; i++)
		steps[i - 1] = fabs((double)(times_ns[i] - times_ns[i - 1]) - period_ns);
	*grid = (struct grid){.origin_ns = times_ns[count - 1],
			      .period_ns = period_ns,
			      .spread_ns = median_ns(steps, count - 1)};
	free(steps);
	return period_ns >= 1 && equal * 4 >= (count - 1) * 3 && shorter * 100 <= count;
}

bool grid_fit(const int64_t *times_ns, size_t count, struct grid *grid)
{
	static const int percents[] = {50, 30, 15, 5};
	double *room, *steps;
	bool found = false;
	size_t step_count = 0;

	if (count < LEAST_TIMES)
		return false;
	room = malloc(3 * count * sizeof(*room));
	if (!room)
		return false;
	steps = room + 2 * count;
	for (size_t i = 1; i < count; i++) {
		if (times_ns[i] > times_ns[i - 1])
			steps[step_count++] = (double)(times_ns[i] - times_ns[i - 1]);
	}
	qsort(steps, step_count, sizeof(*steps), by_value);
	for (size_t i = 0; !found && step_count && i < sizeof(percents) / sizeof(percents[0]); i++)
		found = fits(times_ns, count, steps[step_count * (size_t)percents[i] / 100], room, grid);
	free(room);
	return found;
}
