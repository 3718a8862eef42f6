/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every clock id, every null pointer: the page's answer for seven clocks, the kernel's for the rest. */
#include <limits.h>

#include "host.h"

#define ENOSYS 38

const int served_clocks[SERVED_CLOCKS] = {0, 1, 4, 5, 6, 7, 11};

bool is_served(int clock)
{
	for (int i = 0; i < SERVED_CLOCKS; i++)
		if (served_clocks[i] == clock)
			return true;
	return false;
}

bool is_coarse(int clock)
{
	return clock == UVDSO_CLOCK_REALTIME_COARSE || clock == UVDSO_CLOCK_MONOTONIC_COARSE;
}

static void check_served(int clock)
{
	long resolution = is_coarse(clock) ? 4000000 : 1;
	struct spec spec = {-7, -7};
	struct spec64 wide = {-7, -7};
	CHECK(image.gettime(clock, &spec) == 0, "clock %d", clock);
	CHECK(spec.sec == 100 + clock && spec.nsec == 17, "clock %d: %ld.%09ld", clock, spec.sec,
	      spec.nsec);
	CHECK(image.gettime64(clock, &wide) == 0, "clock %d", clock);
	CHECK(wide.sec == 100 + clock && wide.nsec == 17, "clock %d: %lld", clock,
	      (long long)wide.sec);
	CHECK(image.nanos(clock) == (100 + clock) * INT64_C(1000000000) + 17, "clock %d: ns", clock);
	CHECK(image.getres(clock, &spec) == 0, "clock %d: getres", clock);
	CHECK(spec.sec == 0 && spec.nsec == resolution, "clock %d: getres %ld", clock, spec.nsec);
	CHECK(image.getres64(clock, &wide) == 0, "clock %d: getres64", clock);
	CHECK(wide.sec == 0 && wide.nsec == resolution, "clock %d: getres64 %lld", clock,
	      (long long)wide.nsec);
	CHECK(image.getres(clock, NULL) == 0, "clock %d: getres into nothing", clock);
	CHECK(image.getres64(clock, NULL) == 0, "clock %d: getres64 into nothing", clock);
}

static void check_unserved(int clock)
{
	struct spec spec = {-7, -7}, kernel = {-7, -7};
	struct spec64 wide = {-7, -7}, kernel_wide = {-7, -7};
#define SAME(ours, theirs)                                                                      \
	do {                                                                                    \
		long found = ours, wanted = theirs;                                             \
		if (enosys)                                                                     \
			wanted = -ENOSYS;                                                       \
		CHECK(found == wanted, "clock %d: " #ours " is %ld, wanted %ld", clock, found,  \
		      wanted);                                                                  \
	} while (0)
	SAME(image.gettime(clock, &spec), kernel_gettime(clock, &kernel));
	SAME(image.gettime64(clock, &wide), kernel_gettime64(clock, &kernel_wide));
	SAME(image.gettime(clock, NULL), kernel_gettime(clock, NULL));
	SAME(image.gettime64(clock, NULL), kernel_gettime64(clock, NULL));
	long ns = (long)kernel_gettime64(clock, &kernel_wide);
	int64_t found = image.nanos(clock);
	CHECK(enosys ? found == -ENOSYS : ns ? found == ns : found >= 0, "clock %d: ns %lld", clock,
	      (long long)found);
	if (!enosys && kernel.sec != -7)
		CHECK(spec.sec >= 0 && spec.sec <= kernel.sec, "clock %d: %ld s", clock, spec.sec);
	spec.nsec = kernel.nsec = -7;
	wide.nsec = kernel_wide.nsec = -7;
	SAME(image.getres(clock, &spec), kernel_getres(clock, &kernel));
	SAME(image.getres64(clock, &wide), kernel_getres64(clock, &kernel_wide));
	SAME(image.getres(clock, NULL), kernel_getres(clock, NULL));
	SAME(image.getres64(clock, NULL), kernel_getres64(clock, NULL));
	if (!enosys) {
		CHECK(spec.nsec == kernel.nsec, "clock %d: getres %ld", clock, spec.nsec);
		CHECK(wide.nsec == kernel_wide.nsec, "clock %d: getres64", clock);
	}
#undef SAME
}

void check_ids(void)
{
	page_clear();
	for (int i = 0; i < SERVED_CLOCKS; i++) {
		int clock = served_clocks[i];
		page_serve(clock, 100 + clock, is_coarse(clock) ? 17 : 10);
	}
	page->memory_counter = 7;
	for (int clock = -300; clock <= 300; clock++) {
		if (is_served(clock))
			check_served(clock);
		else
			check_unserved(clock);
	}
	static const int far[] = {INT_MIN, INT_MAX, 1 << 16, -65536, 32, 64};
	for (size_t i = 0; i < sizeof far / sizeof *far; i++)
		check_unserved(far[i]);
	CHECK(image.gettimeofday(NULL, NULL) == 0, "gettimeofday of nothing");
}
