// SPDX-License-Identifier: MIT OR Apache-2.0
/* Setting things: the wall clock, the timezone, the distance of TAI, a leap second. */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <unistd.h>

static void set_realtime(int64_t secs, long nanos)
{
	struct timespec ts = { secs, nanos };

	if (clock_settime(CLOCK_REALTIME, &ts))
		die("clock_settime");
}

/* The clocks that no setting may disturb, from another CPU. */
static void undisturbed(struct shared *shared)
{
	static const int clocks[] = {
		CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_MONOTONIC_COARSE,
	};

	while (!shared->stop)
		for (int i = 0; i < 4; i++, shared->count++)
			bracket(&shared->tally, clocks[i]);
}

/* A set clock is seen at once, on the CPU that set it, through every function. */
void judge_settime(void)
{
	struct shared *shared = shared_new();
	struct tally seen = { 0 };
	int pid;

	pin(0);
	pid = spawn(1, undisturbed, shared);
	/* At least as long as the other CPU needs to see something of it. */
	for (int i = 0; i < 300 || shared->count < 1000; i++) {
		/* Before, far beyond and within the range of 32-bit seconds; to and fro. */
		static const int64_t at[] = { 1700000000, 4200000000, 86400, 2147483646 };
		int64_t secs = at[i % 4] + i;

		set_realtime(secs, 999000000 - i * 1000);
		for (int c = 0; c < NCLOCKS; c++) {
			int64_t low = secs * NSEC_PER_SEC;

			if (CLOCKS[c] == CLOCK_PROCESS_CPUTIME_ID ||
			    CLOCKS[c] == CLOCK_THREAD_CPUTIME_ID)
				continue;
			bracket(&seen, CLOCKS[c]);
			if (CLOCKS[c] == CLOCK_REALTIME || CLOCKS[c] == CLOCK_REALTIME_COARSE)
				within(&seen, low, ask_vdso(CLOCKS[c]), low + 10 * NSEC_PER_SEC);
		}
	}
	set_realtime(1700000000, 0);
	shared->stop = 1;
	join(pid);
	report("settime", "kind=seen", &seen);
	report("settime", "kind=undisturbed", &shared->tally);
}

static void zone_is(struct tally *tally, int cpu, int west, int dst)
{
	struct timezone zone = { 12345, 12345 };
	struct timeval tv;

	pin(cpu);
	/* Alone, and together with the time. */
	holds(tally, !vdso.gettimeofday(NULL, &zone));
	holds(tally, zone.tz_minuteswest == west && zone.tz_dsttime == dst);
	memset(&zone, 0x55, sizeof(zone));
	holds(tally, !vdso.gettimeofday(&tv, &zone));
	holds(tally, zone.tz_minuteswest == west && zone.tz_dsttime == dst);
}

/* A timezone is seen at once, on every CPU, and not at the next tick. */
void judge_timezone(void)
{
	struct tally tally = { 0 };

	for (int i = 0; i < 400; i++) {
		struct timezone zone = { (i * 37) % 1801 - 900, i % 5 };

		pin(i % cpus());
		if (syscall(SYS_settimeofday, NULL, &zone))
			die("settimeofday");
		for (int cpu = 0; cpu < cpus(); cpu++)
			zone_is(&tally, (i + cpu) % cpus(), zone.tz_minuteswest, zone.tz_dsttime);
	}
	struct timezone utc = { 0, 0 };
	syscall(SYS_settimeofday, NULL, &utc);
	report("timezone", "kind=at-once", &tally);
}

static int tai_offset(void)
{
	struct timex timex = { 0 };

	adjtimex(&timex);
	return timex.tai;
}

/* TAI minus REALTIME, by the vDSO alone, within the time that the reads took. */
static void tai_is(struct tally *tally, int offset)
{
	int64_t before = ask_vdso(CLOCK_REALTIME);
	int64_t tai = ask_vdso(CLOCK_TAI);
	int64_t after = ask_vdso(CLOCK_REALTIME);

	within(tally, before + offset * NSEC_PER_SEC, tai, after + offset * NSEC_PER_SEC);
}

void judge_tai(void)
{
	struct tally tally = { 0 };

	pin(0);
	for (int i = 0; i < 200; i++) {
		int offset = (i * 7) % 60;
		struct timex timex = { .modes = ADJ_TAI, .constant = offset };

		if (adjtimex(&timex) < 0)
			die("adjtimex");
		tai_is(&tally, offset);
		bracket(&tally, CLOCK_TAI);
		bracket(&tally, CLOCK_REALTIME);
		bracket(&tally, CLOCK_MONOTONIC);
	}
	report("tai", "kind=offset", &tally);
}

/*
 * Through an inserted leap second: REALTIME repeats one second, once; TAI and MONOTONIC go on.
 *
 * The vDSO may only step where the kernel steps, so the comparison with the kernel goes on; around
 * the one step the kernel's two answers are out of order and bound nothing.
 */
void judge_leap(void)
{
	struct tally bound = { 0 }, shape = { 0 };
	struct timex timex = { .modes = ADJ_STATUS, .status = STA_INS };
	int64_t last[3], step = 0;
	int steps = 0, before;
	static const int clocks[] = { CLOCK_REALTIME, CLOCK_TAI, CLOCK_MONOTONIC };

	pin(0);
	before = tai_offset();
	/* 2023-12-31 23:59:58.5 UTC */
	set_realtime(1704067198, 500000000);
	if (adjtimex(&timex) < 0)
		die("adjtimex");
	for (int i = 0; i < 3; i++)
		last[i] = ask_vdso(clocks[i]);
	for (int64_t end = ask_kernel(CLOCK_MONOTONIC) + 4 * NSEC_PER_SEC;
	     ask_kernel(CLOCK_MONOTONIC) < end;) {
		for (int i = 0; i < 3; i++) {
			int64_t low = ask_kernel(clocks[i]);
			int64_t now = ask_vdso(clocks[i]);
			int64_t high = ask_kernel(clocks[i]);

			if (low <= high)
				within(&bound, low, now, high);
			if (now < last[i]) {
				steps++;
				step = last[i] - now;
				holds(&shape, clocks[i] == CLOCK_REALTIME);
			}
			last[i] = now;
		}
	}
	/* One step of a second, less what went by between the two reads around it. */
	holds(&shape, steps == 1);
	within(&shape, NSEC_PER_SEC * 8 / 10, step, NSEC_PER_SEC);
	holds(&shape, tai_offset() == before + 1);
	tai_is(&shape, before + 1);
	memset(&timex, 0, sizeof(timex));
	timex.modes = ADJ_STATUS;
	adjtimex(&timex);
	report("leap", "kind=bracket", &bound);
	report("leap", "kind=shape", &shape);
}
