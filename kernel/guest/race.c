// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A reader against a writer that never rests: adjusting the frequency publishes an update each
 * time, about a hundred thousand a second, from the other CPU.
 *
 * The adjustments are 0.01 ppm. With hundreds of ppm even a stock kernel shows backward steps on
 * emulated CPUs, when the host takes a CPU away for milliseconds in the middle of an update.
 */
#include "guest.h"

#include <stdio.h>
#include <string.h>
#include <sys/timex.h>

#define FREQUENCY 655 /* 0.01 ppm in adjtimex's 16.16 fixed point */

static void writer(struct shared *shared)
{
	struct timex timex;

	while (!shared->stop) {
		memset(&timex, 0, sizeof(timex));
		timex.modes = ADJ_FREQUENCY;
		timex.freq = shared->count & 1 ? FREQUENCY : -FREQUENCY;
		if (adjtimex(&timex) < 0)
			die("adjtimex");
		shared->count++;
	}
	memset(&timex, 0, sizeof(timex));
	timex.modes = ADJ_FREQUENCY;
	adjtimex(&timex);
}

/* No system calls between the reads: a step back within the vDSO's own values. */
static void ascending(struct tally *tally, int clock)
{
	int64_t last = ask_vdso(clock);

	for (int i = 0; i < 20; i++) {
		int64_t now = ask_vdso(clock);

		within(tally, last, now, INT64_MAX);
		last = now;
	}
}

void judge_race(int seconds)
{
	static const int precise[] = {
		CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_TAI,
	};
	struct shared *shared = shared_new();
	struct tally brackets = { 0 }, ascents = { 0 };
	char what[80];
	int64_t end;
	int pid;

	pin(0);
	end = ask_kernel(CLOCK_MONOTONIC) + seconds * NSEC_PER_SEC;
	pid = spawn(1, writer, shared);
	while (ask_kernel(CLOCK_MONOTONIC) < end)
		for (int i = 0; i < 500; i++) {
			bracket(&brackets, precise[i % 5]);
			ascending(&ascents, precise[i % 5]);
		}
	shared->stop = 1;
	join(pid);
	snprintf(what, sizeof(what), "kind=bracket seconds=%d updates=%llu", seconds,
		 (unsigned long long)shared->count);
	report("race", what, &brackets);
	snprintf(what, sizeof(what), "kind=ascent seconds=%d updates=%llu", seconds,
		 (unsigned long long)shared->count);
	report("race", what, &ascents);
}
