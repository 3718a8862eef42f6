// SPDX-License-Identifier: MIT OR Apache-2.0
/* Where signals return through the vDSO (aarch64), it is the image's own trampoline. */
#define _GNU_SOURCE
#include "guest.h"

#ifdef __aarch64__
#include <signal.h>
#include <stdio.h>

static struct tally tally;

static void handler(int signal, siginfo_t *info, void *context)
{
	const void *back = __builtin_extract_return_addr(__builtin_return_address(0));

	(void)signal, (void)info, (void)context;
	holds(&tally, vdso.rt_sigreturn && back == vdso.rt_sigreturn);
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
