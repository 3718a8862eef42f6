/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A C program that maps an image and its page slots, as a kernel would, and calls the image.
 *
 * It runs on any architecture, under emulation too: it knows the image from its ELF headers, and
 * the expected values from a table that exact arithmetic filled (vectors.h, made by xtask).
 */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvdso_page.h"

/* The structures of the plain names: 32-bit seconds on a 32-bit architecture. */
struct spec {
	long sec, nsec;
};
struct val {
	long sec, usec;
};
/* The structure of the names that end in 64. */
struct spec64 {
	int64_t sec, nsec;
};
struct zone {
	int minuteswest, dsttime;
};

/* What the image exports; absent ones are null. On 64-bit the wide functions are the plain ones. */
struct functions {
	long (*gettime)(int, struct spec *);
	long (*gettime64)(int, struct spec64 *);
	long (*getres)(int, struct spec *);
	long (*getres64)(int, struct spec64 *);
	long (*gettimeofday)(struct val *, struct zone *);
	long (*time)(long *);
	long (*getcpu)(unsigned *, unsigned *, void *);
	int64_t (*nanos)(int);
	void *sigreturn, *rt_sigreturn, *vsyscall;
};

extern struct functions image;
/* The image's first byte, its bytes in memory, and the writable views of slots -4 and -3. */
extern const unsigned char *image_base;
extern size_t image_bytes, image_slot_bytes;
extern volatile struct uvdso_page *page, *page_behind;
/* Whether an emulator runs this program, and whether the image has the policy "enosys". */
extern bool emulated, enosys;

void image_map(const char *path, size_t slot_bytes);
/* An empty page again: everything falls back. */
void page_clear(void);
/* One served clock on a page in mode MEMORY at one nanosecond a cycle. */
void page_serve(int clock, int64_t sec, uint64_t nsec);

/* The kernel's own answers, past every vDSO. */
long kernel_gettime(int clock, struct spec *spec);
long kernel_gettime64(int clock, struct spec64 *spec);
long kernel_getres(int clock, struct spec *spec);
long kernel_getres64(int clock, struct spec64 *spec);
long kernel_gettimeofday(struct val *val, struct zone *zone);

/* Counting what holds. A failure says where, and what was found. */
extern unsigned passed, failed;
void check(bool holds, const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
#define CHECK(holds, ...) check(holds, __FILE__, __LINE__, __VA_ARGS__)

/* The clocks that a page serves. */
#define SERVED_CLOCKS 7
extern const int served_clocks[SERVED_CLOCKS];
bool is_served(int clock);
bool is_coarse(int clock);

/* Counters: this program's own read, and how often a trapped one had to be emulated. */
uint64_t counter_now(void);
extern volatile unsigned counter_traps;
void counter_catch_traps(void);

void check_vectors(void);
void check_modes(void);
void check_ids(void);
void check_signals(void);
void check_stack(void);
/* Calls for xtask to watch from outside: each follows a marker in the trace of system calls. */
void make_traced_calls(void);
void make_table_calls(void);

#endif
