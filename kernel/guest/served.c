// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Which calls enter the kernel? A comparison with the kernel passes by itself if the vDSO asks the
 * kernel too, so this counts system calls, with ptrace: the one way that needs no configuration.
 */
#include "guest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define CALLS 10

/* What is called, and whether it needs the counter, only the page, or always the kernel. */
enum need { COUNTER, PAGE, KERNEL };
struct call {
	const char *name;
	enum need need;
	void (*make)(int id);
	int id;
};

static void gettime(int id)
{
	struct timespec ts;

	vdso.clock_gettime(id, &ts);
}

static void getres(int id)
{
	struct timespec ts;

	vdso.clock_getres(id, &ts);
}

static void time_of_day(int id)
{
	struct timeval tv;
	struct timezone tz;

	vdso.gettimeofday(id & 1 ? &tv : NULL, id & 2 ? &tz : NULL);
}

static void seconds(int id)
{
	(void)id;
	if (vdso.time)
		vdso.time(NULL);
}

static void getcpu(int id)
{
	unsigned cpu, node;

	(void)id;
	if (vdso.getcpu)
		vdso.getcpu(&cpu, &node, NULL);
}

static void gettime_ns(int id)
{
	if (vdso.clock_gettime_ns)
		vdso.clock_gettime_ns(id);
}

static const struct call calls[] = {
	{ "realtime", COUNTER, gettime, CLOCK_REALTIME },
	{ "monotonic", COUNTER, gettime, CLOCK_MONOTONIC },
	{ "raw", COUNTER, gettime, CLOCK_MONOTONIC_RAW },
	{ "boottime", COUNTER, gettime, CLOCK_BOOTTIME },
	{ "tai", COUNTER, gettime, CLOCK_TAI },
	{ "realtime-coarse", PAGE, gettime, CLOCK_REALTIME_COARSE },
	{ "monotonic-coarse", PAGE, gettime, CLOCK_MONOTONIC_COARSE },
	{ "process-cpu", KERNEL, gettime, CLOCK_PROCESS_CPUTIME_ID },
	{ "thread-cpu", KERNEL, gettime, CLOCK_THREAD_CPUTIME_ID },
	{ "alarm", KERNEL, gettime, CLOCK_REALTIME_ALARM },
	{ "unknown", KERNEL, gettime, 31 },
	{ "negative", KERNEL, gettime, -6 },
	{ "getres-monotonic", PAGE, getres, CLOCK_MONOTONIC },
	{ "getres-raw", PAGE, getres, CLOCK_MONOTONIC_RAW },
	{ "getres-coarse", PAGE, getres, CLOCK_REALTIME_COARSE },
	{ "getres-cpu", KERNEL, getres, CLOCK_THREAD_CPUTIME_ID },
	{ "gettimeofday-tv", COUNTER, time_of_day, 1 },
	{ "gettimeofday-tz", PAGE, time_of_day, 2 },
	{ "gettimeofday-both", COUNTER, time_of_day, 3 },
	{ "time", PAGE, seconds, 0 },
	{ "getcpu", PAGE, getcpu, 0 },
	{ "ns-monotonic", COUNTER, gettime_ns, CLOCK_MONOTONIC },
	{ "ns-boottime", COUNTER, gettime_ns, CLOCK_BOOTTIME },
};
#define NCALLS (int)(sizeof(calls) / sizeof(calls[0]))

static void traced(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	for (int i = 0; i < NCALLS; i++) {
		/* The mark between two calls. */
		syscall(SYS_getppid);
		for (int n = 0; n < CALLS; n++)
			calls[i].make(calls[i].id);
	}
	syscall(SYS_getppid);
	_exit(0);
}

/* Counts the system calls between marks; -1 in all if the child did not get through. */
static void count(int *entered)
{
	int status, call = -1, pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		traced();
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD);
	for (;;) {
		struct __ptrace_syscall_info info;

		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
			break;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == SYS_getppid)
			call++;
		else if (call >= 0 && call < NCALLS)
			entered[call]++;
	}
	if (call != NCALLS)
		die("served: the traced child did not finish");
}

/* `precise`: whether the counter can be read, so that only the kernel's own clocks enter it. */
void judge_served(const char *when, bool precise)
{
	struct tally tally = { 0 };
	int entered[NCALLS] = { 0 };
	char what[64];

	count(entered);
	for (int i = 0; i < NCALLS; i++) {
		bool absent = (calls[i].make == seconds && !vdso.time) ||
			      (calls[i].make == getcpu && !vdso.getcpu) ||
			      (calls[i].make == gettime_ns && !vdso.clock_gettime_ns);
		bool enters = calls[i].need == KERNEL || (calls[i].need == COUNTER && !precise);

		if (absent)
			continue;
		holds(&tally, entered[i] == (enters ? CALLS : 0));
		if (entered[i] != (enters ? CALLS : 0))
			printf("served: %s: %s entered the kernel %d times of %d\n", when,
			       calls[i].name, entered[i], CALLS);
	}
	snprintf(what, sizeof(what), "when=%s precise=%d", when, precise);
	report("served", what, &tally);
}
