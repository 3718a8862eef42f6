// SPDX-License-Identifier: MIT OR Apache-2.0
/* Suspend to memory, woken by the clock's alarm: BOOTTIME counts it, MONOTONIC does not. */
#include "guest.h"

#include <stdio.h>

#define SECONDS 2

void judge_suspend(void)
{
	struct tally tally = { 0 };
	int64_t before, after, grown;
	char what[64];

	pin(0);
	before = ask_vdso(CLOCK_BOOTTIME) - ask_vdso(CLOCK_MONOTONIC);
	write_file("/sys/class/rtc/rtc0/wakealarm", "+2");
	/* Returns when the guest is awake again. */
	write_file("/sys/power/state", "mem");
	after = ask_vdso(CLOCK_BOOTTIME) - ask_vdso(CLOCK_MONOTONIC);
	grown = after - before;
	/* The alarm has whole seconds, so up to one is lost before; waking takes a while. */
	within(&tally, NSEC_PER_SEC / 2, grown, (SECONDS + 3) * NSEC_PER_SEC);
	for (int n = 0; n < 1000; n++)
		for (int i = 0; i < NCLOCKS; i++)
			bracket(&tally, CLOCKS[i]);
	snprintf(what, sizeof(what), "slept_ms=%lld", (long long)grown / 1000000);
	report("suspend", what, &tally);
	judge_served("resumed", true);
	judge_bracket("resumed");
}
