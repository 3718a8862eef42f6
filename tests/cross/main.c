/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* host IMAGE SLOT_BYTES POLICY native|emulated check|fallbacks|table */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

unsigned passed, failed;

void check(bool holds, const char *file, int line, const char *format, ...)
{
	if (holds) {
		passed++;
		return;
	}
	if (failed++ >= 20)
		return;
	va_list arguments;
	printf("%s:%d: ", file, line);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

/* A system call that does nothing and shows its text in a trace. */
static void marker(const char *text)
{
	access(text, F_OK);
}

#define TRACED(text, call)        \
	do {                      \
		marker("mark:" text); \
		(void)call;       \
	} while (0)

void make_traced_calls(void)
{
	struct spec spec;
	struct spec64 wide;
	struct val val;
	struct zone zone;
	/* Nothing is published: each call must become its system call. */
	page_clear();
	page->hrtimer_res = page->coarse_res = 0;
	TRACED("clock_gettime", image.gettime(0, &spec));
	TRACED("clock_gettime64", image.gettime64(0, &wide));
	TRACED("clock_gettime coarse", image.gettime(5, &spec));
	TRACED("clock_gettime unknown", image.gettime(77, &spec));
	TRACED("clock_gettime64 unknown", image.gettime64(77, &wide));
	TRACED("clock_getres", image.getres(0, &spec));
	TRACED("clock_getres64", image.getres64(0, &wide));
	TRACED("clock_getres nothing", image.getres(77, NULL));
	TRACED("clock_getres64 nothing", image.getres64(77, NULL));
	TRACED("gettimeofday", image.gettimeofday(&val, NULL));
	TRACED("gettimeofday zone", image.gettimeofday(NULL, &zone));
	TRACED("gettimeofday both", image.gettimeofday(&val, &zone));
	TRACED("clock_gettime_ns", image.nanos(0));
	TRACED("clock_gettime_ns unknown", image.nanos(77));
	if (image.getcpu)
		TRACED("getcpu", image.getcpu(NULL, NULL, NULL));
	if (image.time)
		TRACED("time", image.time(NULL));
	/* A page without a counter: precise clocks fall back, the others do not. */
	for (int i = 0; i < SERVED_CLOCKS; i++)
		page_serve(served_clocks[i], 1, 1);
	page->clock_mode = UVDSO_MODE_NONE;
	page->hrtimer_res = 1;
	page->coarse_res = 4000000;
	TRACED("none clock_gettime", image.gettime(1, &spec));
	TRACED("none clock_gettime64", image.gettime64(1, &wide));
	TRACED("none clock_gettime coarse", image.gettime(6, &spec));
	TRACED("none clock_getres", image.getres(1, &spec));
	TRACED("none gettimeofday", image.gettimeofday(&val, NULL));
	TRACED("none gettimeofday zone", image.gettimeofday(NULL, &zone));
	/* Everything is served: no call may enter the kernel. */
	page->clock_mode = UVDSO_MODE_MEMORY;
	TRACED("served clock_gettime", image.gettime(0, &spec));
	TRACED("served clock_gettime64", image.gettime64(0, &wide));
	TRACED("served clock_getres", image.getres(0, NULL));
	TRACED("served gettimeofday both", image.gettimeofday(&val, &zone));
	TRACED("served gettimeofday nothing", image.gettimeofday(NULL, NULL));
	TRACED("served clock_gettime_ns", image.nanos(11));
	if (image.time)
		TRACED("served time", image.time(NULL));
	marker("mark:end");
}

void make_table_calls(void)
{
	struct spec spec;
	page_clear();
	for (int i = 0; i < SERVED_CLOCKS; i++)
		page_serve(served_clocks[i], 1, 1);
	TRACED("clock_getres REALTIME", image.getres(0, &spec));
	TRACED("clock_getres BOOTTIME", image.getres(7, &spec));
	TRACED("clock_getres TAI", image.getres(11, &spec));
	TRACED("clock_getres unsupported", image.getres(-1, &spec));
	TRACED("clock_gettime REALTIME", image.gettime(0, &spec));
	TRACED("clock_gettime MONOTONIC_RAW", image.gettime(4, &spec));
	TRACED("clock_gettime MONOTONIC_COARSE", image.gettime(6, &spec));
	TRACED("clock_gettime_ns MONOTONIC", image.nanos(1));
	marker("mark:end");
}

int main(int count, char **arguments)
{
	if (count != 6) {
		fprintf(stderr, "usage: host IMAGE SLOT_BYTES POLICY native|emulated "
				"check|fallbacks|table\n");
		return 2;
	}
	size_t slot_bytes = strtoul(arguments[2], NULL, 10);
	enosys = !strcmp(arguments[3], "enosys");
	emulated = !strcmp(arguments[4], "emulated");
	const char *task = arguments[5];
	counter_catch_traps();
	image_map(arguments[1], slot_bytes);
	if (!strcmp(task, "fallbacks")) {
		make_traced_calls();
		return failed != 0;
	}
	if (!strcmp(task, "table")) {
		make_table_calls();
		return failed != 0;
	}
	check_vectors();
	check_modes();
	check_ids();
	check_signals();
	check_stack();
	printf("%u checks, %u failed\n", passed + failed, failed);
	return failed != 0;
}
