/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clock modes: the architecture's counter is read where the page says so, and nowhere else; pages
 * that are being written, or belong to a time namespace, are read as they must be.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

#define ENOSYS 38

/* What every call must do whose clock the page cannot serve. */
static void check_falls_back(int clock, const char *why)
{
	struct spec64 before, now = {-7, -7}, after;
	kernel_gettime64(clock, &before);
	long answer = image.gettime64(clock, &now);
	kernel_gettime64(clock, &after);
	if (enosys) {
		CHECK(answer == -ENOSYS && now.sec == -7, "%s: clock %d answers %ld", why, clock, answer);
		return;
	}
	CHECK(answer == 0 && before.sec <= now.sec && now.sec <= after.sec,
	      "%s: clock %d answers %ld, %lld s", why, clock, answer, (long long)now.sec);
}

/* The other functions must go on without a counter. */
static void check_without_counter(const char *why)
{
	struct spec64 now = {-7, -7};
	struct zone zone = {-7, -7};
	page->basetime[UVDSO_CLOCK_MONOTONIC_COARSE].sec = 41;
	page->basetime[UVDSO_CLOCK_MONOTONIC_COARSE].nsec = 5;
	page->tz_minuteswest = 120;
	CHECK(image.gettime64(UVDSO_CLOCK_MONOTONIC_COARSE, &now) == 0, "%s: coarse", why);
	CHECK(now.sec == 41 && now.nsec == 5, "%s: coarse %lld", why, (long long)now.sec);
	CHECK(image.getres64(0, &now) == 0 && now.sec == 0 && now.nsec == 1, "%s: getres", why);
	CHECK(image.gettimeofday((void *)0, &zone) == 0 && zone.minuteswest == 120, "%s: zone", why);
	if (image.time)
		CHECK(image.time((void *)0) == 1000, "%s: time", why);
}

static bool reads_counter(int mode)
{
	switch (mode) {
	case UVDSO_MODE_COUNTER:
		return true;
#if defined(__x86_64__) || defined(__i386__)
	case UVDSO_MODE_RDTSCP:
		return true;
#endif
#if defined(__aarch64__)
	case UVDSO_MODE_CNTVCTSS:
		return true;
#endif
#if __SIZEOF_POINTER__ == 8
	case UVDSO_MODE_COUNTER_64:
		return true;
#endif
	default:
		return false;
	}
}

static void check_counter(int mode)
{
	uint64_t first = counter_now();
	page->cycle_last = first;
	uint64_t last = 0;
	for (int i = 0; i < 1000; i++) {
		uint64_t before = counter_now() - first;
		int64_t nanos = image.nanos(0) - INT64_C(1000000000000);
		uint64_t after = counter_now() - first;
		CHECK(before <= (uint64_t)nanos && (uint64_t)nanos <= after,
		      "mode %#x: %lld is not between %llu and %llu", mode, (long long)nanos,
		      (unsigned long long)before, (unsigned long long)after);
		CHECK(last <= (uint64_t)nanos, "mode %#x: the counter went back", mode);
		last = (uint64_t)nanos;
	}
	struct spec64 now;
	CHECK(image.gettime64(0, &now) == 0 && now.sec >= 1000, "mode %#x", mode);
	/* A base in the future: the counter is behind, and time stands still. */
	page->cycle_last = counter_now() + (UINT64_C(1) << 40);
	CHECK(image.nanos(0) == INT64_C(1000000000000), "mode %#x: behind", mode);
}

static void check_namespace(void)
{
	page_clear();
	page->seq = 1;
	page->clock_mode = UVDSO_MODE_TIMENS;
	page->basetime[UVDSO_CLOCK_MONOTONIC].sec = 500;
	page->basetime[UVDSO_CLOCK_MONOTONIC].nsec = 999999999;
	page->basetime[UVDSO_CLOCK_BOOTTIME].sec = (uint64_t)-100;
	page_behind->clock_mode = UVDSO_MODE_MEMORY;
	page_behind->hrtimer_res = 1;
	page_behind->cs[0].mask = UINT64_MAX;
	page_behind->cs[0].mult = 1;
	page_behind->basetime[UVDSO_CLOCK_MONOTONIC].sec = 7;
	page_behind->basetime[UVDSO_CLOCK_BOOTTIME].sec = 9;
	page_behind->basetime[UVDSO_CLOCK_REALTIME].sec = 11;
	page_behind->memory_counter = 3;
	struct spec64 now;
	CHECK(image.gettime64(UVDSO_CLOCK_MONOTONIC, &now) == 0, "namespace");
	CHECK(now.sec == 508 && now.nsec == 2, "namespace: monotonic %lld.%09lld",
	      (long long)now.sec, (long long)now.nsec);
	CHECK(image.gettime64(UVDSO_CLOCK_BOOTTIME, &now) == 0, "namespace");
	CHECK(now.sec == -91 && now.nsec == 3, "namespace: boottime %lld", (long long)now.sec);
	CHECK(image.nanos(UVDSO_CLOCK_REALTIME) == INT64_C(11000000003), "namespace: realtime");
}

#if defined(__x86_64__) || defined(__i386__)
static void check_getcpu(void)
{
	/* Emulators know neither the segment nor the register. */
	if (emulated)
		return;
	page_clear();
	page->features = UVDSO_FEATURE_GETCPU_SEGMENT_LIMIT;
	for (int cpu = 0; cpu < 2; cpu++) {
		cpu_set_t set;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof set, &set))
			break;
		unsigned found = ~0u, node = ~0u, kernel_cpu, kernel_node;
		syscall(SYS_getcpu, &kernel_cpu, &kernel_node, NULL);
		CHECK(image.getcpu(&found, &node, NULL) == 0, "getcpu");
		CHECK(found == kernel_cpu && node == kernel_node, "getcpu says %u, %u", found, node);
		CHECK(image.getcpu(NULL, NULL, NULL) == 0, "getcpu of nothing");
	}
}
#else
static void check_getcpu(void)
{
	unsigned cpu = ~0u, node = ~0u;
	if (!image.getcpu)
		return;
	long answer = image.getcpu(&cpu, &node, NULL);
	CHECK(enosys ? answer == -ENOSYS : answer == 0 && cpu != ~0u && node != ~0u,
	      "getcpu answers %ld", answer);
}
#endif

void check_modes(void)
{
	static const int modes[] = {
		UVDSO_MODE_NONE, UVDSO_MODE_COUNTER, UVDSO_MODE_PVCLOCK, UVDSO_MODE_HVCLOCK,
		UVDSO_MODE_RDTSCP, UVDSO_MODE_CNTVCTSS, UVDSO_MODE_COUNTER_64,
		4, 0xff, 0x104, -1, INT_MIN, INT_MAX, 0x10001, 0x1000000,
	};
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		char why[32];
		snprintf(why, sizeof why, "mode %#x", modes[i]);
		page_clear();
		page_serve(0, 1000, 0);
		page->clock_mode = modes[i];
		unsigned traps = counter_traps;
		/* A mode that says "namespace" makes a reader look into the page behind. */
		if (modes[i] != UVDSO_MODE_TIMENS)
			check_without_counter(why);
		CHECK(counter_traps == traps, "%s: a coarse clock touched the counter", why);
		if (reads_counter(modes[i])) {
			check_counter(modes[i]);
			continue;
		}
		check_falls_back(0, why);
		check_falls_back(1, why);
		CHECK(counter_traps == traps, "%s: the counter was touched", why);
	}

	/* A writer that died in the middle. */
	page_clear();
	page_serve(0, 1000, 0);
	page->seq = 0x7fffffff;
	check_falls_back(0, "an odd page");
	page->seq = 0xfffffffe;
	CHECK(image.nanos(0) == INT64_C(1000000000000), "an even page");

	check_namespace();
	check_getcpu();
}
