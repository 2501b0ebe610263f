// SPDX-License-Identifier: MIT
/*
 * The samples of the kernel modules, with rings of the test's own instead of a device: their order, losses,
 * the steps of a task in the kernel, and the comparison with the wire's time stamps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ext/signal/engine/path/wire.h"
#include "ext/signal/engine/periodic/edges.h"
#include "ext/signal/engine/periodic/kernel_toggler.h"
#include "ext/signal/engine/response/response_reference.h"
#include "kmod/device.h"
#include "tests/cm.h"

#define START INT64_C(77000000000)
#define HALF INT64_C(1000000)
#define RINGS 2
#define CAPACITY 16

static char *memory;
static struct rtgauge_map *map;
static struct rtgauge_status status;
static struct kmod_device device;
static char *text;
static size_t size;
static struct json j;

/* The linker uses these instead of the real ones. */
int __wrap_ioctl(int fd, unsigned long request, void *argument);
void __wrap_wire_look(void);
int64_t __wrap_wire_edge(enum wire_line output, int64_t after_ns, int64_t until_ns);

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	(void)fd;
	if (request != RTGAUGE_IOC_STATUS) {
		errno = ENOTTY;
		return -1;
	}
	*(struct rtgauge_status *)argument = status;
	return 0;
}

static int64_t wire[WIRE_LINES][8]; /* the times of each output's edges; 0: no more */

void __wrap_wire_look(void)
{
}

int64_t __wrap_wire_edge(enum wire_line output, int64_t after_ns, int64_t until_ns)
{
	for (const int64_t *time_ns = wire[output]; *time_ns; time_ns++) {
		if (*time_ns > after_ns && *time_ns <= until_ns)
			return *time_ns;
	}
	return 0;
}

static struct rtgauge_ring *ring(unsigned int number)
{
	return (struct rtgauge_ring *)(memory + map->first + number * map->stride);
}

static int begin(void **state)
{
	(void)state;
	memory = calloc(1, 65536);
	map = (struct rtgauge_map *)memory;
	*map = (struct rtgauge_map){.rings = RINGS, .capacity = CAPACITY, .first = 4096, .stride = 8192};
	status = (struct rtgauge_status){.state = RTGAUGE_STATE_RUNNING};
	device = (struct kmod_device){
		.name = "test", .fd = 0, .map = map, .held = calloc(65536, sizeof(struct rtgauge_sample))};
	memset(wire, 0, sizeof(wire));
	json_start(&j, open_memstream(&text, &size));
	return 0;
}

static int end(void **state)
{
	(void)state;
	fclose(j.out);
	free(text);
	free(device.held);
	free(memory);
	return 0;
}

static void put(unsigned int cpu, uint64_t number, int64_t a, int64_t b, int64_t c, int64_t d)
{
	struct rtgauge_ring *r = ring(cpu);

	r->samples[r->head++ % CAPACITY] = (struct rtgauge_sample){.number = number, .time_ns = {a, b, c, d}};
}

static int64_t next_number(void)
{
	const struct rtgauge_sample *sample = kmod_next(&device);

	return sample ? (int64_t)sample->number : -1;
}

static void a_sample_waits_for_earlier_ones_of_other_cpus(void **state)
{
	(void)state;
	put(0, 1, 0, 0, 0, 0);
	assert_false(kmod_look(&device));
	assert_int_equal(next_number(), -1);
	put(1, 0, 0, 0, 0, 0);
	put(0, 2, 0, 0, 0, 0);
	assert_false(kmod_look(&device));
	assert_int_equal(next_number(), 0);
	assert_int_equal(next_number(), 1);
	assert_int_equal(next_number(), -1);
	assert_false(kmod_look(&device));
	assert_int_equal(next_number(), 2);
}

static void at_the_end_all_are_given(void **state)
{
	(void)state;
	put(1, 4, 0, 0, 0, 0);
	put(0, 7, 0, 0, 0, 0);
	status.state = RTGAUGE_STATE_ENDED;
	assert_true(kmod_look(&device));
	assert_int_equal(next_number(), 4);
	assert_int_equal(next_number(), 7);
	assert_int_equal(next_number(), -1);
	assert_int_equal(ring(0)->tail, 1);
}

static void rings_that_go_round_are_read_to_their_end(void **state)
{
	(void)state;
	for (uint64_t number = 0; number < 100; number++) {
		put(number % 2, number, 0, 0, 0, 0);
		kmod_look(&device);
		if (number)
			assert_int_equal(next_number(), (int64_t)number - 1);
	}
	status.state = RTGAUGE_STATE_ENDED;
	kmod_look(&device);
	assert_int_equal(next_number(), 99);
}

static struct edges edges;
static struct edge_reference reference;
static struct kernel_toggler toggler;
static struct histogram negatives[EDGES_SERIES + EDGE_REFERENCE_SERIES];

static int begin_periodic(void **state)
{
	int failed = begin(state);

	memset(&edges, 0, sizeof(edges));
	memset(&reference, 0, sizeof(reference));
	memset(&toggler, 0, sizeof(toggler));
	if (failed || !edges_make(&edges) || !edge_reference_make(&reference))
		return -1;
	edges.start_ns = START;
	edges.half_ns = reference.half_ns = HALF;
	edges.reference = &reference;
	toggler.device = device;
	toggler.steps = calloc(KERNEL_STEPS, sizeof(*toggler.steps));
	for (int i = 0; i < EDGES_SERIES; i++) {
		series_timed(&edges.series[i], START, 0, 1000 * HALF);
		edges.series[i].negatives = &negatives[i];
	}
	for (int i = 0; i < EDGE_REFERENCE_SERIES; i++) {
		series_timed(&reference.series[i], START, 0, 1000 * HALF);
		reference.series[i].negatives = &negatives[EDGES_SERIES + i];
		series_begin(&reference.series[i]);
	}
	for (int i = 0; i < KERNEL_STEPS; i++) {
		series_timed(&toggler.steps[i], START, 0, 1000 * HALF);
		series_begin(&toggler.steps[i]);
	}
	edges.series[SELF_LATENCY] = (struct series){
		.interval_ns = HALF, .start_ns = START, .total_count = 1000, .measured_ns = 1000 * HALF};
	for (int i = 0; i < EDGES_SERIES; i++)
		series_begin(&edges.series[i]);
	return 0;
}

static int end_periodic(void **state)
{
	for (int i = 0; i < EDGES_SERIES; i++)
		series_free(&edges.series[i]);
	for (int i = 0; i < EDGE_REFERENCE_SERIES; i++)
		series_free(&reference.series[i]);
	for (int i = 0; i < KERNEL_STEPS; i++)
		series_free(&toggler.steps[i]);
	free(edges.series);
	free(edges.releases);
	free(reference.series);
	free(reference.waiting);
	free(toggler.steps);
	return end(state);
}

/* An activation in the kernel: how late the timer's handler was, then the thread, then the line. */
static void toggled(uint64_t number, int64_t irq_ns, int64_t thread_ns, int64_t done_ns)
{
	int64_t release_ns = START + (int64_t)number * HALF;

	put(0, number, release_ns, release_ns + irq_ns, thread_ns ? release_ns + thread_ns : 0,
	    release_ns + done_ns);
}

static struct series *ended(struct series *s)
{
	series_end(s, true, &j);
	return s;
}

static void take_all(void)
{
	status.state = RTGAUGE_STATE_ENDED;
	assert_false(kernel_toggler_take(&toggler, &edges, &j));
	edge_reference_take(&reference, true, &j);
}

static void a_task_in_the_kernel_is_taken_apart(void **state)
{
	(void)state;
	toggled(0, 10, 30, 35);
	toggled(1, 20, 50, 2 * HALF + 100); /* so late that the next two have passed */
	toggled(4, 10, 30, 35);
	take_all();
	assert_int_equal(ended(&edges.series[SELF_LATENCY])->total.count, 3);
	assert_int_equal(edges.series[SELF_LATENCY].missed, 2);
	assert_int_equal(edges.series[SELF_LATENCY].lost, 0);
	assert_int_equal(ended(&toggler.steps[STEP_INTERRUPT])->total.max_ns, 20);
	assert_int_equal(ended(&toggler.steps[STEP_THREAD])->total.max_ns, 30);
	assert_int_equal(ended(&toggler.steps[STEP_WORK])->total.min_ns, 5);
	assert_int_equal(ended(&edges.series[SELF_JITTER])->total.count, 2);
}

static void what_a_ring_had_no_room_for_is_lost_and_names_no_edge(void **state)
{
	(void)state;
	edges.both = true;
	toggled(0, 10, 0, 35);
	toggled(2, 10, 0, 35);
	take_all();
	assert_int_equal(ended(&edges.series[SELF_LATENCY])->total.count, 2);
	assert_int_equal(edges.series[SELF_LATENCY].lost, 1);
	assert_int_equal(ended(&edges.series[SELF_JITTER])->total.count, 0);
	assert_false(edges.both);
}

static void each_edge_is_compared_with_the_wire(void **state)
{
	static const int64_t on_the_wire[] = {START + 20, START + HALF + 60, START + 3 * HALF + 10, 0};

	(void)state;
	memcpy(wire[WIRE_MASTER_OUT], on_the_wire, sizeof(on_the_wire));
	for (uint64_t i = 0; i < 4; i++)
		toggled(i, 10, 0, 100);
	take_all();
	assert_int_equal(ended(&reference.series[WIRE_LATENCY])->total.count,
			 3); /* it has none of the third */
	assert_int_equal(reference.series[WIRE_LATENCY].total.max_ns, 60);
	assert_int_equal(ended(&reference.series[WIRE_JITTER])->total.count, 1);
	assert_int_equal(reference.series[WIRE_JITTER].total.max_ns, 40);
	assert_int_equal(ended(&reference.series[SELF_DIFFERENCE])->total.min_ns, 40);
	assert_int_equal(reference.series[SELF_DIFFERENCE].total.max_ns, 90);
	assert_int_equal(reference.matched, 3);
	assert_int_equal(reference.unmatched, 1);
}

static void a_response_is_that_between_the_edges_on_the_wire(void **state)
{
	static struct response_reference r;

	(void)state;
	assert_true(response_reference_make(&r, 0));
	r.timeout_ns = HALF;
	for (int i = 0; i < RESPONSE_REFERENCE_SERIES; i++) {
		series_timed(&r.series[i], START, 0, 1000 * HALF);
		series_begin(&r.series[i]);
	}
	wire[WIRE_MASTER_OUT][0] = START + 10;
	wire[WIRE_SLAVE_OUT][0] = START + 70;
	response_reference_add(&r, &(struct stimulus){.sent_ns = START, .back_ns = START + 100}, &j);
	response_reference_add(&r, &(struct stimulus){.sent_ns = START + HALF, .back_ns = MASTER_LOST}, &j);
	response_reference_add(
		&r, &(struct stimulus){.sent_ns = START + 3 * HALF, .back_ns = START + 3 * HALF + 100}, &j);
	response_reference_take(&r, true, &j);
	assert_int_equal(ended(&r.series[WIRE_RESPONSE])->total.count, 1);
	assert_int_equal(r.series[WIRE_RESPONSE].total.max_ns, 60);
	assert_int_equal(r.series[WIRE_RESPONSE].missed, 1);
	assert_int_equal(ended(&r.series[DIFFERENCE])->total.max_ns, 40);
	assert_int_equal(r.unmatched, 1);
	for (int i = 0; i < RESPONSE_REFERENCE_SERIES; i++)
		series_free(&r.series[i]);
	free(r.series[DIFFERENCE].negatives);
	free(r.series);
	free(r.waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_sample_waits_for_earlier_ones_of_other_cpus, begin, end),
		cmocka_unit_test_setup_teardown(at_the_end_all_are_given, begin, end),
		cmocka_unit_test_setup_teardown(rings_that_go_round_are_read_to_their_end, begin, end),
		cmocka_unit_test_setup_teardown(a_task_in_the_kernel_is_taken_apart, begin_periodic,
						end_periodic),
		cmocka_unit_test_setup_teardown(what_a_ring_had_no_room_for_is_lost_and_names_no_edge,
						begin_periodic, end_periodic),
		cmocka_unit_test_setup_teardown(each_edge_is_compared_with_the_wire, begin_periodic,
						end_periodic),
		cmocka_unit_test_setup_teardown(a_response_is_that_between_the_edges_on_the_wire, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
