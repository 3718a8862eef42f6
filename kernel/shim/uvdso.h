/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The interface between the C shim and the Rust writer.
 *
 * No structure of Linux crosses it, and none of the page: the shim fills in the record below, the
 * writer (kernel/writer) makes the page of it. A test of the writer holds the two sides together.
 */
#ifndef UVDSO_H
#define UVDSO_H

/* How a program reads the counter (datapage::ClockMode). */
#define UVDSO_MODE_NONE 0
#define UVDSO_MODE_COUNTER 1
#define UVDSO_MODE_COUNTER_64BIT_ONLY 259

/* What the kernel maintains beyond the clocks (datapage::Features). */
#define UVDSO_FEATURE_GETCPU_SEGMENT_LIMIT 2

struct uvdso_timekeeper {
	u64 cycle_last;
	u64 raw_cycle_last;
	u64 mask;
	u64 raw_mask;
	u64 xtime_sec;
	u64 xtime_nsec;
	u64 raw_sec;
	u64 raw_xtime_nsec;
	s64 wall_to_monotonic_sec;
	s64 wall_to_monotonic_nsec;
	s64 monotonic_to_boot_sec;
	s64 monotonic_to_boot_nsec;
	u64 coarse_nsec;
	u32 mult;
	u32 shift;
	u32 raw_mult;
	u32 raw_shift;
	s32 tai_offset;
	s32 clock_mode;
	u32 hrtimer_res;
	u32 tick_nsec;
};

#define UVDSO_FIELD(name, offset) \
	_Static_assert(offsetof(struct uvdso_timekeeper, name) == (offset), #name)
UVDSO_FIELD(cycle_last, 0);
UVDSO_FIELD(raw_cycle_last, 8);
UVDSO_FIELD(mask, 16);
UVDSO_FIELD(raw_mask, 24);
UVDSO_FIELD(xtime_sec, 32);
UVDSO_FIELD(xtime_nsec, 40);
UVDSO_FIELD(raw_sec, 48);
UVDSO_FIELD(raw_xtime_nsec, 56);
UVDSO_FIELD(wall_to_monotonic_sec, 64);
UVDSO_FIELD(wall_to_monotonic_nsec, 72);
UVDSO_FIELD(monotonic_to_boot_sec, 80);
UVDSO_FIELD(monotonic_to_boot_nsec, 88);
UVDSO_FIELD(coarse_nsec, 96);
UVDSO_FIELD(mult, 104);
UVDSO_FIELD(shift, 108);
UVDSO_FIELD(raw_mult, 112);
UVDSO_FIELD(raw_shift, 116);
UVDSO_FIELD(tai_offset, 120);
UVDSO_FIELD(clock_mode, 124);
UVDSO_FIELD(hrtimer_res, 128);
UVDSO_FIELD(tick_nsec, 132);

/* Makes `page` one that serves nothing yet. Once, before anything else. */
void uvdso_format(void *page, u64 features);

/* Publishes the timekeeper's state. Not 0: it was refused, and the page serves nothing. */
s32 uvdso_update(void *page, const struct uvdso_timekeeper *timekeeper);

/* Publishes the timezone. */
void uvdso_update_tz(void *page, s32 minutes_west, s32 dst_time);

/* Makes a zeroed page that of a time namespace; once, before a task of it runs. */
void uvdso_setup_timens(void *page, u64 features, s64 monotonic_sec, s64 monotonic_nsec,
			s64 boottime_sec, s64 boottime_nsec);

#endif
