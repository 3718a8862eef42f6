// SPDX-License-Identifier: MIT OR Apache-2.0
/* The clocksource changes under load: from a counter that programs read to one they cannot. */
#include "guest.h"

#include <stdio.h>
#include <unistd.h>

#define DIRECTORY "/sys/devices/system/clocksource/clocksource0/"

static void load(struct shared *shared)
{
	while (!shared->stop)
		for (int i = 0; i < NCLOCKS; i++) {
			bracket(&shared->tally, CLOCKS[i]);
			shared->count++;
		}
}

void judge_clocksource(void)
{
	struct shared *shared[2] = { shared_new(), shared_new() };
	int pids[2];

	for (int cpu = 0; cpu < 2; cpu++)
		pids[cpu] = spawn(cpu, load, shared[cpu]);
	for (int i = 0; i < 20; i++) {
		write_file(DIRECTORY "current_clocksource", "hpet");
		usleep(50000);
		if (i == 10) {
			judge_served("hpet", false);
			judge_bracket("hpet");
		}
		write_file(DIRECTORY "current_clocksource", "tsc");
		usleep(50000);
	}
	for (int cpu = 0; cpu < 2; cpu++) {
		char what[32];

		shared[cpu]->stop = 1;
		join(pids[cpu]);
		snprintf(what, sizeof(what), "kind=under-load cpu=%d", cpu);
		report("clocksource", what, &shared[cpu]->tally);
	}
	judge_served("tsc-again", true);
	judge_bracket("tsc-again");
}
