/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include "board.h"
#include "pio.h"
#include "rp2040.h"

#define STREAM_COUNT 4u
#define RING_BITS 13u /* bytes, as the DMA counts them */
#define RING_WORDS (1u << (RING_BITS - 2u))
/* A ring counts as full this early, so that nothing is overwritten while a few edges are processed. */
#define RING_SLACK 512u
/* A DMA channel moves this many words before the other one of the pair continues: a multiple of the ring. */
#define BLOCK_WORDS 0x80000000u
#define MARGIN_TICKS (2ull * TICKS_PER_US)
/* The timer's time tells the turn of a 32-bit time; it may be too early by this much. */
#define TURN_MARGIN (1u << 20)

/* Even cycles begin at LOW, odd ones at ODD, one cycle later. X is the rest; ~X counts the looks. In the
 * loop of a low level the look comes first, in the loop of a high level the count; the 6 cycles from one
 * loop to the other count 3. */
enum {
	ODD = 0,
	ROSE = 1,
	HIGH = 5,
	FELL = 7,
	LOW = 12,
	LAST = 13,
};

static const uint16_t program[] = {
	[ODD] = PIO_JMP(LOW),
	[ROSE] = PIO_MOV_ISR_NOT_X,
	[ROSE + 1] = PIO_PUSH_NOBLOCK,
	[ROSE + 2] = PIO_JMP_X_DECREMENT(ROSE + 3),
	[ROSE + 3] = PIO_JMP_X_DECREMENT(HIGH),
	[HIGH] = PIO_JMP_X_DECREMENT(HIGH + 1),
	[HIGH + 1] = PIO_JMP_PIN(HIGH),
	[FELL] = PIO_MOV_ISR_NOT_X,
	[FELL + 1] = PIO_PUSH_NOBLOCK,
	[FELL + 2] = PIO_JMP_X_DECREMENT(FELL + 3),
	[FELL + 3] = PIO_JMP_X_DECREMENT(FELL + 4),
	[FELL + 4] = PIO_JMP_X_DECREMENT(LOW),
	[LOW] = PIO_JMP_PIN(ROSE),
	[LAST] = PIO_JMP_X_DECREMENT(LOW), /* wraps to LOW also if X was 0 */
};

/*
 * Two for each line: even and odd cycles. Times here are the low 32 bits of ticks, which wrap after 34 s;
 * everything in the rings is younger, and times are compared by their difference.
 */
struct stream {
	uint32_t visible; /* words that may be read, counted since the start of the capture */
	uint32_t written; /* words seen at the last look */
	uint32_t read;
	uint32_t head; /* time of the next word */
	bool waiting;  /* there is a next word */
	bool high;     /* level after the next word */
};

static uint32_t rings[STREAM_COUNT][RING_WORDS] __attribute__((section(".rings"), aligned(RING_WORDS * 4u)));
static struct stream streams[STREAM_COUNT];
static struct capture_losses losses;
static unsigned first_stream;
static unsigned pins[LINE_COUNT];
static uint64_t epoch_us;  /* of time 0 */
static uint64_t base;	   /* ticks from time 0 to the start of the counts */
static uint64_t counts_us; /* when the counts started */
static uint64_t reference; /* TURN_MARGIN later than the last look at the rings */
static uint64_t horizon;
static uint64_t next_horizon;
static bool running;

static uint32_t written_words(unsigned stream)
{
	/* The two channels of a pair move blocks in turn. A finished one reads 0, the place where the other
	 * begins. */
	unsigned channel = stream;

	if (!(REGISTER(DMA_CH_AL1_CTRL(channel)) & DMA_CTRL_BUSY))
		channel += STREAM_COUNT;
	return (0u - REGISTER(DMA_CH_TRANS_COUNT(channel))) & (BLOCK_WORDS - 1u);
}

static void dma_start(unsigned stream)
{
	for (unsigned turn = 2; turn-- > 0;) {
		unsigned channel = stream + turn * STREAM_COUNT;
		unsigned other = stream + (1u - turn) * STREAM_COUNT;
		uint32_t control = DMA_CTRL_EN | DMA_CTRL_HIGH_PRIORITY | DMA_CTRL_DATA_SIZE_WORD |
				   DMA_CTRL_INCR_WRITE | DMA_CTRL_RING_SIZE(RING_BITS) |
				   DMA_CTRL_RING_SEL_WRITE | DMA_CTRL_CHAIN_TO(other) |
				   DMA_CTRL_TREQ_SEL(DREQ_PIO0_RX0 + stream) | DMA_CTRL_IRQ_QUIET;

		REGISTER(DMA_CH_READ_ADDR(channel)) = PIO0_BASE + PIO_RXF(stream);
		REGISTER(DMA_CH_WRITE_ADDR(channel)) = (uint32_t)(uintptr_t)rings[stream];
		REGISTER(DMA_CH_TRANS_COUNT(channel)) = BLOCK_WORDS;
		REGISTER(turn == 0 ? DMA_CH_CTRL_TRIG(channel) : DMA_CH_AL1_CTRL(channel)) = control;
	}
}

static void dma_stop(void)
{
	for (unsigned channel = 0; channel < 2u * STREAM_COUNT; channel++)
		ALIAS_CLR(DMA_CH_AL1_CTRL(channel)) = DMA_CTRL_EN;
	REGISTER(DMA_CHAN_ABORT) = 0xffu;
	for (unsigned channel = 0; channel < 2u * STREAM_COUNT; channel++)
		while (REGISTER(DMA_CH_AL1_CTRL(channel)) & DMA_CTRL_BUSY)
			;
}

static void state_machine_start(unsigned stream)
{
	unsigned pin = pins[stream / 2u];

	REGISTER(PIO0_BASE + PIO_SM_CLKDIV(stream)) = 1u << 16;
	REGISTER(PIO0_BASE + PIO_SM_EXECCTRL(stream)) =
		PIO_EXECCTRL_WRAP(LOW, LAST) | PIO_EXECCTRL_JMP_PIN(pin);
	REGISTER(PIO0_BASE + PIO_SM_SHIFTCTRL(stream)) =
		PIO_SHIFTCTRL_IN_RIGHT | PIO_SHIFTCTRL_OUT_RIGHT | PIO_SHIFTCTRL_FJOIN_RX;
	while (!(REGISTER(PIO0_BASE + PIO_FSTAT) & PIO_FSTAT_RXEMPTY(stream)))
		(void)REGISTER(PIO0_BASE + PIO_RXF(stream));
	REGISTER(PIO0_BASE + PIO_SM_INSTR(stream)) = PIO_MOV_X_NOT_NULL;
	REGISTER(PIO0_BASE + PIO_SM_INSTR(stream)) = PIO_JMP(stream % 2u ? ODD : LOW);
}

static void counts_start(void)
{
	uint32_t mask = first_stream ? 0xcu : 0xfu;

	REGISTER(PIO0_BASE + PIO_CTRL) = 0;
	dma_stop();
	for (unsigned i = 0; i < sizeof(program) / sizeof(program[0]); i++)
		REGISTER(PIO0_BASE + PIO_INSTR_MEM(i)) = program[i];
	for (unsigned stream = first_stream; stream < STREAM_COUNT; stream++) {
		state_machine_start(stream);
		/* A line that is high at the start rises in the first two cycles. */
		streams[stream] = (struct stream){.high = true};
		dma_start(stream);
	}
	REGISTER(PIO0_BASE + PIO_FDEBUG) = PIO_FDEBUG_RXSTALL_ALL;
	counts_us = board_time_us();
	base = (counts_us - epoch_us) * TICKS_PER_US;
	REGISTER(PIO0_BASE + PIO_CTRL) = mask | PIO_CTRL_SM_RESTART(mask) | PIO_CTRL_CLKDIV_RESTART(mask);
	horizon = base;
	next_horizon = base;
}

void capture_start(unsigned stimulus_pin, unsigned answer_pin, bool with_stimulus)
{
	first_stream = with_stimulus ? 0 : 2;
	pins[LINE_STIMULUS] = stimulus_pin;
	pins[LINE_ANSWER] = answer_pin;
	losses = (struct capture_losses){0};
	epoch_us = board_time_us();
	running = true;
	counts_start();
}

void capture_stop(void)
{
	REGISTER(PIO0_BASE + PIO_CTRL) = 0;
	dma_stop();
	running = false;
}

static inline void head_update(unsigned index)
{
	struct stream *stream = &streams[index];

	stream->waiting = stream->read != stream->visible;
	if (stream->waiting)
		stream->head = (uint32_t)base + 2u * rings[index][stream->read % RING_WORDS] + index % 2u;
}

static bool lost(void)
{
	if (REGISTER(PIO0_BASE + PIO_FDEBUG) & PIO_FDEBUG_RXSTALL_ALL) {
		losses.edges++;
		return true;
	}
	for (unsigned i = first_stream; i < STREAM_COUNT; i++) {
		uint32_t waiting = (streams[i].written - streams[i].read) & (BLOCK_WORDS - 1u);

		if (waiting > RING_WORDS - RING_SLACK) {
			losses.edges += waiting;
			return true;
		}
	}
	return false;
}

bool capture_look(void)
{
	horizon = next_horizon;
	uint64_t now_us = board_time_us();
	uint64_t now = (now_us - epoch_us) * TICKS_PER_US;

	reference = now + TURN_MARGIN;
	next_horizon = now > MARGIN_TICKS ? now - MARGIN_TICKS : 0;
	/* What the last look saw may be read now: by now it has surely arrived in memory. */
	for (unsigned i = first_stream; i < STREAM_COUNT; i++) {
		streams[i].visible = streams[i].written;
		streams[i].written = written_words(i);
		if (!streams[i].waiting)
			head_update(i);
	}
	if (!lost())
		return true;
	losses.restarts++;
	counts_start();
	return false;
}

static inline void fetch(unsigned index)
{
	streams[index].read = (streams[index].read + 1u) & (BLOCK_WORDS - 1u);
	streams[index].high = !streams[index].high;
	head_update(index);
}

/* The stream of a line whose word is the earlier; STREAM_COUNT if none waits. */
static inline unsigned earlier(unsigned even)
{
	const struct stream *first = &streams[even];
	const struct stream *second = &streams[even + 1u];

	if (first->waiting && second->waiting)
		return (int32_t)(second->head - first->head) < 0 ? even + 1u : even;
	return first->waiting ? even : second->waiting ? even + 1u : STREAM_COUNT;
}

bool capture_next(struct edge *edge)
{
	for (;;) {
		unsigned index = first_stream == 0 ? earlier(0) : STREAM_COUNT;
		unsigned answer = earlier(2);

		/* Of simultaneous edges, the stimulus's comes first. */
		if (index == STREAM_COUNT ||
		    (answer != STREAM_COUNT && (int32_t)(streams[answer].head - streams[index].head) < 0))
			index = answer;
		if (index == STREAM_COUNT)
			return false;
		uint32_t time = streams[index].head;

		if ((int32_t)(time - (uint32_t)horizon) > 0)
			return false;
		const struct stream *other = &streams[index ^ 1u];

		edge->time = reference - ((uint32_t)reference - time);
		edge->line = (enum line)(index / 2u);
		edge->high = streams[index].high;
		edge->single = !other->waiting || other->head - time > 1u || other->high != edge->high;
		if (!edge->single)
			fetch(index ^ 1u);
		fetch(index);
		/* The level at the start is not an edge. */
		if (edge->time - base > 1u)
			return true;
	}
}

bool capture_pending(void)
{
	if (!running)
		return false;
	for (unsigned i = first_stream; i < STREAM_COUNT; i++)
		if (streams[i].read != written_words(i))
			return true;
	return false;
}

uint64_t capture_horizon(void)
{
	return horizon;
}

uint64_t capture_now(void)
{
	return (board_time_us() - epoch_us) * TICKS_PER_US;
}

struct capture_losses capture_losses(void)
{
	return losses;
}

bool capture_running(void)
{
	return running;
}
