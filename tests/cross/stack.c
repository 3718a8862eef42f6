/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How deep the image's calls go: each runs on a stack of its own, which was painted before. Programs
 * call these functions from signal handlers and from threads with stacks of a page or two.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "host.h"

/* A sixteenth of a page; on i386, where arguments and every 64-bit value lie on the stack, more. */
#if defined(__i386__)
#define BUDGET 384
#else
#define BUDGET 256
#endif
#define PAINT 0xa5

static unsigned char stack[64 * 1024] __attribute__((aligned(64)));
static ucontext_t here, there;
static struct spec spec;
static struct spec64 wide;
static struct val val;
static struct zone zone;

static void nothing(void) {}
static void gettime(void) { image.gettime(1, &spec); }
static void gettime64(void) { image.gettime64(1, &wide); }
static void raw(void) { image.gettime64(4, &wide); }
static void coarse(void) { image.gettime64(6, &wide); }
static void getres(void) { image.getres(1, &spec); }
static void getres64(void) { image.getres64(1, &wide); }
static void both(void) { image.gettimeofday(&val, &zone); }
static void nanos(void) { image.nanos(1); }
static void seconds(void)
{
	if (image.time)
		image.time(NULL);
}

static void (*measured)(void);
static size_t untouched;

/* Looks at the stack before anything else can use it. */
static void measure(void)
{
	measured();
	untouched = 0;
	while (untouched < sizeof stack && ((volatile unsigned char *)stack)[untouched] == PAINT)
		untouched++;
}

static size_t depth(void (*call)(void))
{
	memset(stack, PAINT, sizeof stack);
	measured = call;
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof stack;
	there.uc_link = &here;
	makecontext(&there, measure, 0);
	swapcontext(&here, &there);
	return sizeof stack - untouched;
}

void check_stack(void)
{
	static void (*const calls[])(void) = {gettime, gettime64, raw,   coarse, getres,
					      getres64, both,	 nanos, seconds};
	size_t own = depth(nothing), deepest = 0;
	/* The quick way, a product of more than 64 bits, a namespace, and the fallback. */
	for (int state = 0; state < 4; state++) {
		page_clear();
		for (int i = 0; i < SERVED_CLOCKS && state < 2; i++)
			page_serve(served_clocks[i], 1, 1);
		if (state == 1) {
			page->cs[0].mult = page->cs[1].mult = UINT32_MAX;
			page->memory_counter = UINT64_MAX >> 2;
		}
		if (state == 2) {
			page->seq = 1;
			page->clock_mode = UVDSO_MODE_TIMENS;
			memcpy((void *)page_behind, (const void *)page, sizeof *page);
			page_behind->seq = 0;
			page_behind->clock_mode = UVDSO_MODE_MEMORY;
			for (int i = 0; i < SERVED_CLOCKS; i++)
				page_behind->basetime[served_clocks[i]].sec = 1;
		}
		for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
			size_t used = depth(calls[i]) - own;
			if (used > deepest)
				deepest = used;
			CHECK(used <= BUDGET, "call %zu in state %d uses %zu bytes of stack", i, state,
			      used);
		}
	}
	CHECK(deepest > 0, "no call touched the stack");
	printf("stack: %zu bytes at most\n", deepest);
}
