// SPDX-License-Identifier: MIT
#include "rt/barrier.h"

#define SPINS 4000 /* more than threads with equal work differ by, far less than any step takes */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
	__asm__ volatile("yield" ::: "memory");
#elif defined(__riscv)
	__asm__ volatile(".4byte 0x0100000f" ::
				 : "memory"); /* pause; without Zihintpause, a fence of nothing */
#elif defined(__loongarch__)
	__asm__ volatile("" ::: "memory"); /* there is no such instruction */
#endif
}

void barrier_init(struct barrier *b, unsigned int threads, unsigned int cpus)
{
	atomic_init(&b->arrived, 0);
	atomic_init(&b->generation, 0);
	b->threads = threads;
	b->spins = threads <= cpus ? SPINS : 0;
	sem_init(&b->gate[0], 0, 0);
	sem_init(&b->gate[1], 0, 0);
}

void barrier_pass(struct barrier *b, void (*once)(void *arg), void *arg)
{
	unsigned int generation = atomic_load_explicit(&b->generation, memory_order_relaxed);
	sem_t *gate = &b->gate[generation & 1];

	if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == b->threads) {
		atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
		once(arg);
		/* Before the tokens: a thread with a token must not return to this gate. */
		atomic_store_explicit(&b->generation, generation + 1, memory_order_release);
		for (unsigned int i = 1; i < b->threads; i++)
			sem_post(gate);
		return;
	}
	for (unsigned int spin = 0; spin < b->spins; spin++) {
		if (atomic_load_explicit(&b->generation, memory_order_acquire) != generation &&
		    !sem_trywait(gate))
			return;
		relax();
	}
	while (sem_wait(gate))
		;
}
