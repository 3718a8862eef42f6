/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the guest's judges share. guest.c is init and runs them; each other file is one question.
 *
 * The guest only observes and counts: each judge prints one line "@name key=value ...", and the
 * host decides (xtask/src/kernel/judge.rs). So a judge that did not run, or found nothing to check,
 * is seen there.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000ll

/* The vDSO of this process, found the way any C library finds it (vdso.c). */
struct vdso {
	const uint8_t *base;
	long (*clock_gettime)(int id, struct timespec *ts);
	long (*clock_getres)(int id, struct timespec *res);
	long (*gettimeofday)(void *tv, void *tz);
	long (*time)(time_t *t);
	long (*getcpu)(unsigned *cpu, unsigned *node, void *unused);
	int64_t (*clock_gettime_ns)(int id);
	const void *rt_sigreturn; /* no function: where a signal handler returns to */
};
extern struct vdso vdso;
void vdso_find(void);

/* Bytes from the data page to the image, in an image of this project. */
#define DATA_OFFSET 16384

/* What one judge counts. */
struct tally {
	uint64_t checks;
	uint64_t bad;
	int64_t worst; /* by how many nanoseconds the worst bad check was off */
};
/* Counts a check that low <= value <= high. */
void within(struct tally *tally, int64_t low, int64_t value, int64_t high);
/* Counts a check of a plain truth. */
void holds(struct tally *tally, bool truth);
/* Prints "@judge what checks=.. bad=.. worst=..". */
void report(const char *judge, const char *what, const struct tally *tally);

/* The clocks as pseudo ids: those of Linux, and three more ways to ask. */
enum {
	CLOCK_VIA_GETTIMEOFDAY = 100, /* REALTIME in microseconds */
	CLOCK_VIA_TIME,               /* REALTIME's second as of the last tick */
	CLOCK_VIA_NS,                 /* MONOTONIC through clock_gettime_ns */
	CLOCK_VIA_NS_REALTIME,
};
extern const int CLOCKS[];
extern const int NCLOCKS;
const char *clock_label(int clock);

/* A clock in nanoseconds: from the kernel, and from the vDSO. */
int64_t ask_kernel(int clock);
int64_t ask_vdso(int clock);
/* One check: kernel, vDSO, kernel again. */
void bracket(struct tally *tally, int clock);

void pin(int cpu);
int cpus(void);
/* What a child on another CPU shares with its parent: it ends when `stop` is set. */
struct shared {
	volatile int stop;
	struct tally tally;
	volatile uint64_t count;
};
struct shared *shared_new(void);
/* Runs `body` in a child that is pinned to `cpu`. */
int spawn(int cpu, void (*body)(struct shared *), struct shared *shared);
void join(int pid);

void write_file(const char *path, const char *text);
void die(const char *what);

/* The judges. */
void judge_identity(void);
void judge_getcpu(void);
void judge_served(const char *when, bool precise);
void judge_bracket(const char *when);
void judge_race(int seconds);
void judge_settime(void);
void judge_timezone(void);
void judge_tai(void);
void judge_leap(void);
void judge_clocksource(void);
void judge_timens(void);
void judge_suspend(void);
void judge_signals(void);

#endif
