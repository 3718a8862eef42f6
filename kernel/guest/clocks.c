// SPDX-License-Identifier: MIT OR Apache-2.0
/* The clocks, asked both ways; and the one comparison that most judges make of them. */
#include "guest.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* The seven that a page serves, two that only the kernel can, and other ways to ask. */
const int CLOCKS[] = {
	CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
	CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME,
	CLOCK_TAI, CLOCK_VIA_GETTIMEOFDAY, CLOCK_VIA_TIME, CLOCK_VIA_NS, CLOCK_VIA_NS_REALTIME,
};
const int NCLOCKS = sizeof(CLOCKS) / sizeof(CLOCKS[0]);

const char *clock_label(int clock)
{
	static char label[24];

	switch (clock) {
	case CLOCK_VIA_GETTIMEOFDAY:
		return "gettimeofday";
	case CLOCK_VIA_TIME:
		return "time";
	case CLOCK_VIA_NS:
		return "ns-monotonic";
	case CLOCK_VIA_NS_REALTIME:
		return "ns-realtime";
	default:
		snprintf(label, sizeof(label), "clock-%d", clock);
		return label;
	}
}

static int64_t nanos(struct timespec ts)
{
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

int64_t ask_kernel(int clock)
{
	struct timespec ts;

	if (clock == CLOCK_VIA_NS)
		clock = CLOCK_MONOTONIC;
	else if (clock == CLOCK_VIA_GETTIMEOFDAY || clock == CLOCK_VIA_NS_REALTIME)
		clock = CLOCK_REALTIME;
	else if (clock == CLOCK_VIA_TIME)
		clock = CLOCK_REALTIME_COARSE;
	if (syscall(SYS_clock_gettime, clock, &ts))
		die("clock_gettime: the kernel refused");
	return nanos(ts);
}

int64_t ask_vdso(int clock)
{
	struct timespec ts = { -1, -1 };
	struct timeval tv = { -1, -1 };

	switch (clock) {
	case CLOCK_VIA_GETTIMEOFDAY:
		return vdso.gettimeofday(&tv, NULL) ? -1 : tv.tv_sec * NSEC_PER_SEC + tv.tv_usec * 1000;
	case CLOCK_VIA_TIME:
		return vdso.time(NULL) * NSEC_PER_SEC;
	case CLOCK_VIA_NS:
		return vdso.clock_gettime_ns(CLOCK_MONOTONIC);
	case CLOCK_VIA_NS_REALTIME:
		return vdso.clock_gettime_ns(CLOCK_REALTIME);
	default:
		if (vdso.clock_gettime(clock, &ts))
			return -1;
		/* Out of range nanoseconds would hide in the sum. */
		if (ts.tv_nsec < 0 || ts.tv_nsec >= NSEC_PER_SEC)
			return -1;
		return nanos(ts);
	}
}

static bool exists(int clock)
{
	if (clock == CLOCK_VIA_NS || clock == CLOCK_VIA_NS_REALTIME)
		return vdso.clock_gettime_ns;
	return clock != CLOCK_VIA_TIME || vdso.time;
}

void bracket(struct tally *tally, int clock)
{
	int64_t before, value, after, unit = 1;

	if (!exists(clock))
		return;
	before = ask_kernel(clock);
	value = ask_vdso(clock);
	after = ask_kernel(clock);
	/* What the function's unit cuts off the value is cut off the lower bound. */
	if (clock == CLOCK_VIA_GETTIMEOFDAY)
		unit = 1000;
	else if (clock == CLOCK_VIA_TIME)
		unit = NSEC_PER_SEC;
	within(tally, before / unit * unit, value, after);
}

/* Each clock on each CPU. */
void judge_bracket(const char *when)
{
	for (int cpu = 0; cpu < cpus(); cpu++) {
		pin(cpu);
		for (int i = 0; i < NCLOCKS; i++) {
			struct tally tally = { 0 };
			char what[80];

			for (int n = 0; n < 10000; n++)
				bracket(&tally, CLOCKS[i]);
			snprintf(what, sizeof(what), "when=%s cpu=%d clock=%s", when, cpu,
				 clock_label(CLOCKS[i]));
			/* A clock that this image does not have is no check, and no line. */
			if (tally.checks)
				report("bracket", what, &tally);
		}
	}
}
