// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where signals return through the vDSO (aarch64), it is the image's own trampoline. */
#define _GNU_SOURCE
#include "guest.h"

#ifdef __aarch64__
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static struct tally tally;

static void handler(int signal, siginfo_t *info, void *context)
{
	uintptr_t back = (uintptr_t)__builtin_return_address(0);
	uintptr_t base = (uintptr_t)vdso.base;

	(void)signal, (void)info, (void)context;
	holds(&tally, back >= base && back < base + 16384);
}

void judge_signals(void)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 1000; i++) {
		raise(SIGUSR1);
		bracket(&tally, CLOCK_MONOTONIC);
	}
	report("signals", "kind=return", &tally);
}
#else
void judge_signals(void)
{
}
#endif
