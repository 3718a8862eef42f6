// SPDX-License-Identifier: MIT OR Apache-2.0
/* Time namespaces: offsets in a page of their own, in front of the kernel's. */
#define _GNU_SOURCE
#include "guest.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

struct offset {
	int64_t secs;
	long nanos;
};

static int64_t nanos(struct offset offset)
{
	return offset.secs * NSEC_PER_SEC + offset.nanos;
}

/* By how much a clock is shifted here: exactly the offset, or nothing. */
static int64_t shift_of(int clock, struct offset mono, struct offset boot)
{
	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
	case CLOCK_VIA_NS:
		return nanos(mono);
	case CLOCK_BOOTTIME:
		return nanos(boot);
	default:
		return 0;
	}
}

/* What the parent outside the namespace reads, asked through a pipe. */
struct outside {
	int ask[2], answer[2];
};

static int64_t ask_outside(struct outside *outside, int clock)
{
	int64_t value;

	if (write(outside->ask[1], &clock, sizeof(clock)) != sizeof(clock) ||
	    read(outside->answer[0], &value, sizeof(value)) != sizeof(value))
		die("timens: the parent does not answer");
	return value;
}

static void inside(struct outside *outside, struct offset mono, struct offset boot, const char *name)
{
	struct tally shifts = { 0 };
	char when[32], what[48];

	snprintf(when, sizeof(when), "timens-%s", name);
	for (int n = 0; n < 200; n++)
		for (int i = 0; i < NCLOCKS; i++) {
			int clock = CLOCKS[i];
			int64_t shift = shift_of(clock, mono, boot), before, value, after;

			/* The CPU clocks are each process's own. */
			if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID)
				continue;
			/* What is missing in an image is no clock here. */
			if ((clock == CLOCK_VIA_NS || clock == CLOCK_VIA_NS_REALTIME) &&
			    !vdso.clock_gettime_ns)
				continue;
			if (clock == CLOCK_VIA_TIME && !vdso.time)
				continue;
			before = ask_outside(outside, clock);
			value = ask_vdso(clock) - shift;
			after = ask_outside(outside, clock);
			within(&shifts, before, value, after);
		}
	snprintf(what, sizeof(what), "offsets=%s", name);
	report("timens", what, &shifts);
	judge_served(when, true);
	judge_bracket(when);
	exit(0);
}

static void namespaced(const char *name, struct offset mono, struct offset boot)
{
	struct outside outside;
	int clock, status, child;
	char text[160];

	if (unshare(CLONE_NEWTIME))
		die("unshare");
	snprintf(text, sizeof(text), "1 %lld %ld\n7 %lld %ld\n", (long long)mono.secs, mono.nanos,
		 (long long)boot.secs, boot.nanos);
	write_file("/proc/self/timens_offsets", text);
	if (pipe(outside.ask) || pipe(outside.answer))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		close(outside.ask[0]);
		close(outside.answer[1]);
		inside(&outside, mono, boot, name);
	}
	close(outside.ask[1]);
	close(outside.answer[0]);
	while (read(outside.ask[0], &clock, sizeof(clock)) == sizeof(clock)) {
		int64_t value = ask_vdso(clock);

		if (write(outside.answer[1], &value, sizeof(value)) != sizeof(value))
			break;
	}
	waitpid(child, &status, 0);
	exit(!WIFEXITED(status) || WEXITSTATUS(status));
}

/* Offsets that carry, that borrow, and that are as large as the kernel takes. */
void judge_timens(void)
{
	static const struct {
		const char *name;
		struct offset mono, boot;
	} cases[] = {
		{ "carry", { 1000, 999999999 }, { 86400 * 365, 600000000 } },
		{ "borrow", { -2, 500000000 }, { -1, 1 } },
		{ "large", { 4000000000, 1 }, { 4000000001, 999999998 } },
	};

	for (int i = 0; i < 3; i++) {
		int status, pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			namespaced(cases[i].name, cases[i].mono, cases[i].boot);
		waitpid(pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			printf("timens: case %s ended with status %#x\n", cases[i].name, status);
	}
	/* This process never entered one. */
	judge_served("after-timens", true);
}
