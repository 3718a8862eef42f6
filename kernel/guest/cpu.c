// SPDX-License-Identifier: MIT OR Apache-2.0
/* CPUs: pinning, children on other CPUs, and what getcpu says of them. */
#define _GNU_SOURCE
#include "guest.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

int cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

struct shared *shared_new(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

int spawn(int cpu, void (*body)(struct shared *), struct shared *shared)
{
	int pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		pin(cpu);
		body(shared);
		_exit(0);
	}
	return pid;
}

void join(int pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		die("a child failed");
}

void judge_getcpu(void)
{
	struct tally tally = { 0 };

	for (int n = 0; vdso.getcpu && n < 200; n++)
		for (int cpu = 0; cpu < cpus(); cpu++) {
			unsigned a = ~0u, b = ~0u, c = ~0u, d = ~0u;

			pin(cpu);
			holds(&tally, !vdso.getcpu(&a, &b, NULL));
			syscall(SYS_getcpu, &c, &d, NULL);
			holds(&tally, a == (unsigned)cpu && a == c && b == d);
		}
	if (vdso.getcpu)
		report("getcpu", "kind=pinned", &tally);
}
