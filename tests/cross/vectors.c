/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pages and the exact answers to them, in mode MEMORY: every function, both widths of seconds. */
#include "host.h"
#include "vectors.h"

#define ENOSYS 38

static void fill(const struct vector *vector)
{
	int raw = vector->clock == UVDSO_CLOCK_MONOTONIC_RAW;
	page_clear();
	page->clock_mode = UVDSO_MODE_MEMORY;
	page->cycle_last = vector->cycle_last;
	page->cs[raw].mask = vector->mask;
	page->cs[raw].mult = vector->mult;
	page->cs[raw].shift = vector->shift;
	/* The other scale would give another time. */
	page->cs[!raw].mask = UINT64_MAX;
	page->cs[!raw].mult = 0x12345678;
	page->cs[!raw].shift = 1;
	page->basetime[vector->clock].sec = vector->sec;
	page->basetime[vector->clock].nsec = vector->nsec;
	page->memory_counter = vector->counter;
}

/* Whether `wide` lies between two answers of the kernel. */
static bool between(struct spec64 before, struct spec64 wide, struct spec64 after)
{
	int64_t from = before.sec * 1000000000 + before.nsec;
	int64_t at = wide.sec * 1000000000 + wide.nsec;
	return from <= at && at <= after.sec * 1000000000 + after.nsec;
}

static void check_fallback(const struct vector *vector, int index)
{
	struct spec64 before, wide = {-7, -7}, after;
	if (enosys) {
		CHECK(image.gettime64(vector->clock, &wide) == -ENOSYS, "vector %d", index);
		CHECK(wide.sec == -7 && wide.nsec == -7, "vector %d: stored on an error", index);
		CHECK(image.nanos(vector->clock) == -ENOSYS, "vector %d: ns", index);
		return;
	}
	kernel_gettime64(vector->clock, &before);
	CHECK(image.gettime64(vector->clock, &wide) == 0, "vector %d", index);
	int64_t nanos = image.nanos(vector->clock);
	kernel_gettime64(vector->clock, &after);
	CHECK(between(before, wide, after), "vector %d: %lld.%09lld is not the kernel's", index,
	      (long long)wide.sec, (long long)wide.nsec);
	struct spec64 split = {nanos / 1000000000, nanos % 1000000000};
	CHECK(between(before, split, after), "vector %d: %lld ns are not the kernel's", index,
	      (long long)nanos);
}

static void check_realtime(const struct vector *vector, int index)
{
	struct val val = {-7, -7};
	struct zone zone = {-7, -7};
	page->tz_minuteswest = -60;
	page->tz_dsttime = 3;
	CHECK(image.gettimeofday(&val, (void *)0) == 0, "vector %d: gettimeofday", index);
	CHECK(val.sec == (long)vector->want_sec && val.usec == (long)vector->want_nsec / 1000,
	      "vector %d: gettimeofday %ld.%06ld", index, val.sec, val.usec);
	val.sec = val.usec = -7;
	CHECK(image.gettimeofday(&val, &zone) == 0, "vector %d: gettimeofday with a zone", index);
	CHECK(val.sec == (long)vector->want_sec && val.usec == (long)vector->want_nsec / 1000,
	      "vector %d: gettimeofday with a zone %ld.%06ld", index, val.sec, val.usec);
	CHECK(zone.minuteswest == -60 && zone.dsttime == 3, "vector %d: zone %d %d", index,
	      zone.minuteswest, zone.dsttime);
	if (image.time && vector->time_is_plain) {
		long stored = -7;
		CHECK(image.time((void *)0) == (long)vector->sec, "vector %d: time", index);
		CHECK(image.time(&stored) == (long)vector->sec, "vector %d: time", index);
		CHECK(stored == (long)vector->sec, "vector %d: time stored %ld", index, stored);
	}
}

void check_vectors(void)
{
	for (int i = 0; i < (int)(sizeof vectors / sizeof *vectors); i++) {
		const struct vector *vector = &vectors[i];
		fill(vector);
		if (!vector->served) {
			check_fallback(vector, i);
			continue;
		}
		struct spec spec = {-7, -7};
		struct spec64 wide = {-7, -7};
		CHECK(image.gettime(vector->clock, &spec) == 0, "vector %d", i);
		CHECK(spec.sec == (long)vector->want_sec && spec.nsec == (long)vector->want_nsec,
		      "vector %d: %ld.%09ld", i, spec.sec, spec.nsec);
		CHECK(image.gettime64(vector->clock, &wide) == 0, "vector %d", i);
		CHECK(wide.sec == vector->want_sec && wide.nsec == vector->want_nsec,
		      "vector %d: %lld.%09lld", i, (long long)wide.sec, (long long)wide.nsec);
		int64_t nanos = image.nanos(vector->clock);
		CHECK(nanos == vector->want_nanos, "vector %d: %lld ns", i, (long long)nanos);
		if (vector->clock == UVDSO_CLOCK_REALTIME)
			check_realtime(vector, i);
	}
}
