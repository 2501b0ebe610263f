/* SPDX-License-Identifier: MIT */
/* The main loop: the host's commands, the measurement, and the output to the host. */
#include "board.h"
#include "capture.h"
#include "events.h"
#include "frame.h"
#include "link.h"
#include "measure.h"
#include "protocol.h"
#include "usb.h"

#define STATE_EVERY_US 100000u

static uint8_t id[8];
static uint64_t next_state_us;
static bool was_running;

/* A dump goes out in many frames, as there is room. */
static struct {
	bool under_way;
	uint8_t token;
	bool summarized;
	unsigned sign, bin;
	uint32_t outlier;
} dump;

static size_t text_length(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static void refuse(uint8_t token, const char *why)
{
	link_send(REFUSED, token, why, text_length(why));
}

static void send_state(uint8_t token)
{
	struct state state;

	measure_state(&state);
	link_send(STATE, token, &state, sizeof(state));
}

static void send_identity(uint8_t token)
{
	struct __attribute__((packed)) {
		uint16_t protocol;
		uint16_t configuration_size;
		uint32_t ticks_per_second;
		uint8_t id[8];
		char text[sizeof("rtgauge instrument " FIRMWARE_VERSION) - 1];
	} identity = {
		.protocol = PROTOCOL_VERSION,
		.configuration_size = sizeof(struct configuration),
		.ticks_per_second = TICKS_PER_SECOND,
	};
	const char *text = "rtgauge instrument " FIRMWARE_VERSION;

	for (unsigned i = 0; i < sizeof(identity.id); i++)
		identity.id[i] = id[i];
	for (unsigned i = 0; i < sizeof(identity.text); i++)
		identity.text[i] = text[i];
	link_send(ANSWER | IDENTIFY, token, &identity, sizeof(identity));
}

static void configure(const struct frame *frame)
{
	struct configuration wanted;
	uint8_t *bytes = (uint8_t *)&wanted;

	if (frame->length != sizeof(wanted)) {
		refuse(frame->token,
		       "the configuration has another length: firmware and host differ in version");
		return;
	}
	for (size_t i = 0; i < sizeof(wanted); i++)
		bytes[i] = frame->body[i];
	const char *wrong = measure_configure(&wanted);

	if (wrong)
		refuse(frame->token, wrong);
	else
		link_send(ANSWER | CONFIGURE, frame->token, measure_configuration(), sizeof(wanted));
}

static void obey(const struct frame *frame)
{
	switch (frame->type) {
	case IDENTIFY:
		send_identity(frame->token);
		break;
	case CONFIGURE:
		configure(frame);
		break;
	case START:
		if (measure_start())
			link_send(ANSWER | START, frame->token, NULL, 0);
		else
			refuse(frame->token, "it is running, or was not configured");
		break;
	case STOP:
		measure_stop();
		link_send(ANSWER | STOP, frame->token, NULL, 0);
		break;
	case DUMP:
		dump.under_way = true;
		dump.token = frame->token;
		dump.summarized = false;
		dump.sign = 0;
		dump.bin = 0;
		dump.outlier = 0;
		break;
	case GET_STATE:
		send_state(frame->token);
		break;
	case BOOTLOADER:
		measure_stop();
		board_bootloader();
		break;
	default:
		refuse(frame->token, "no such command");
	}
}

static void dump_summary(void)
{
	const struct histogram *histogram = measure_histogram();
	struct summary summary = {
		.count = histogram->count,
		.min = histogram->min,
		.max = histogram->max,
		.sum = histogram->sum,
		.squares_low = histogram->squares_low,
		.squares_high = histogram->squares_high,
	};

	link_send(SUMMARY, dump.token, &summary, sizeof(summary));
	dump.summarized = true;
}

static void dump_bins(void)
{
	struct __attribute__((packed)) {
		uint16_t bin; /* bit 15: of the values below 0 */
		uint64_t count;
	} bins[FRAME_BODY_MAX / 10u];
	unsigned count = 0;
	/* A dump of a running measurement reads a part of the bins at a time. */
	unsigned left = 1024;

	while (dump.sign < 2 && count < sizeof(bins) / sizeof(bins[0]) && left-- > 0) {
		uint64_t value = measure_histogram()->bins[dump.sign][dump.bin];

		if (value > 0) {
			bins[count].bin = (uint16_t)(dump.bin | dump.sign << 15);
			bins[count++].count = value;
		}
		if (++dump.bin == HISTOGRAM_BINS) {
			dump.bin = 0;
			dump.sign++;
		}
	}
	if (count > 0)
		link_send(BINS, dump.token, bins, count * sizeof(bins[0]));
}

static void dump_outliers(void)
{
	const struct histogram *histogram = measure_histogram();
	uint32_t count = histogram->outlier_count - dump.outlier;

	if (count > FRAME_BODY_MAX / sizeof(struct outlier))
		count = FRAME_BODY_MAX / sizeof(struct outlier);
	link_send(OUTLIERS, dump.token, &histogram->outliers[dump.outlier], count * sizeof(struct outlier));
	dump.outlier += count;
}

static void dump_go_on(void)
{
	if (!dump.under_way || !link_has_room())
		return;
	if (!dump.summarized) {
		dump_summary();
	} else if (dump.sign < 2) {
		dump_bins();
	} else if (dump.outlier < measure_histogram()->outlier_count) {
		dump_outliers();
	} else {
		link_send(ANSWER | DUMP, dump.token, NULL, 0);
		dump.under_way = false;
	}
}

static bool pending(void)
{
	return usb_pending() || capture_pending() || (dump.under_way && link_has_room());
}

static void report_state(void)
{
	uint64_t now_us = board_time_us();
	bool running = measure_running();
	struct state state;

	/* If the host does not read, a new state is not worth the room of an answer. */
	if ((running && now_us >= next_state_us) || (was_running && !running)) {
		next_state_us = now_us + STATE_EVERY_US;
		measure_state(&state);
		link_send_event(STATE, &state, sizeof(state));
	}
	was_running = running;
}

int main(void)
{
	board_start();
	board_unique_id(id);
	link_start(obey);
	usb_start(id);
	for (;;) {
		usb_poll();
		measure_poll();
		events_flush(false);
		report_state();
		dump_go_on();
		if (!pending()) {
			uint64_t wake_us = board_time_us() + measure_due() / TICKS_PER_US + 1u;

			board_wake_at(wake_us);
			board_sleep(pending);
		}
	}
}
