/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The vDSO data page, ABI version 1, for kernels written in C (the specification is docs/page.md).
 *
 * This header gives the layout. A kernel in C that publishes by itself follows the protocol of
 * docs/page.md: make `seq` odd, release fence, write the words, make `seq` even with a release store.
 * Every access is to a whole word. One writer at a time.
 *
 * Needs C11 or later. Nothing but <stdint.h> and <stddef.h> is included.
 */
#ifndef UVDSO_PAGE_H
#define UVDSO_PAGE_H

#include <stddef.h>
#include <stdint.h>

#define UVDSO_PAGE_ABI 1u
/* The bytes "uVDSO-pg", read as a native word. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define UVDSO_PAGE_MAGIC UINT64_C(0x755644534f2d7067)
#else
#define UVDSO_PAGE_MAGIC UINT64_C(0x67702d4f53445675)
#endif

/* Page slots below the image: -4 data, -3 time namespace, -2 and -1 reserved. */
#define UVDSO_SLOTS 4u
#define UVDSO_SLOT_DATA (-4)
#define UVDSO_SLOT_TIMENS (-3)
#define UVDSO_DATA_BYTES 512u

/* clock_mode */
#define UVDSO_MODE_NONE 0
#define UVDSO_MODE_COUNTER 1
#define UVDSO_MODE_PVCLOCK 2
#define UVDSO_MODE_HVCLOCK 3
#define UVDSO_MODE_MEMORY 0x100
#define UVDSO_MODE_RDTSCP 0x101
#define UVDSO_MODE_CNTVCTSS 0x102
#define UVDSO_MODE_COUNTER_64 0x103
#define UVDSO_MODE_TIMENS INT32_MAX

/* Clock ids that have a slot in `basetime`; the slots of the others stay zero. */
#define UVDSO_CLOCK_REALTIME 0
#define UVDSO_CLOCK_MONOTONIC 1
#define UVDSO_CLOCK_MONOTONIC_RAW 4
#define UVDSO_CLOCK_REALTIME_COARSE 5
#define UVDSO_CLOCK_MONOTONIC_COARSE 6
#define UVDSO_CLOCK_BOOTTIME 7
#define UVDSO_CLOCK_TAI 11
#define UVDSO_BASES 12

/* features: each is true on every CPU, or the bit is clear. */
#define UVDSO_FEATURE_GETCPU_RDPID (UINT64_C(1) << 0)
#define UVDSO_FEATURE_GETCPU_SEGMENT_LIMIT (UINT64_C(1) << 1)

/* ns = cycles * mult / 2^shift, cycles modulo mask + 1; shift is at most 34. */
struct uvdso_scale {
	uint64_t mask;
	uint32_t mult;
	uint32_t shift;
};

/* A clock at cycle_last. {0, 0} is unpublished; the instant 0 is {-1, 10^9 << shift}. */
struct uvdso_basetime {
	uint64_t sec;  /* two's complement */
	uint64_t nsec; /* shifted left by `shift` for precise clocks, plain for coarse ones */
};

struct uvdso_page {
	uint32_t seq;
	int32_t clock_mode;
	_Alignas(8) uint64_t cycle_last;
	struct uvdso_scale cs[2]; /* steered clocks, MONOTONIC_RAW */
	struct uvdso_basetime basetime[UVDSO_BASES];
	int32_t tz_minuteswest;
	int32_t tz_dsttime;
	uint32_t hrtimer_res; /* ns; 0: not served */
	uint32_t coarse_res;  /* ns; 0: not served */
	uint64_t magic;
	uint32_t abi;
	uint32_t page_bytes; /* distance between slots */
	uint64_t features;
	uint64_t reserved_280[5];
	uint64_t memory_counter;
	uint64_t reserved_328[7];
	uint64_t reserved_384[16];
};

#define UVDSO_AT(field, offset) \
	_Static_assert(offsetof(struct uvdso_page, field) == (offset), "uvdso_page: " #field)
UVDSO_AT(seq, 0);
UVDSO_AT(clock_mode, 4);
UVDSO_AT(cycle_last, 8);
UVDSO_AT(cs, 16);
UVDSO_AT(basetime, 48);
UVDSO_AT(tz_minuteswest, 240);
UVDSO_AT(tz_dsttime, 244);
UVDSO_AT(hrtimer_res, 248);
UVDSO_AT(coarse_res, 252);
UVDSO_AT(magic, 256);
UVDSO_AT(abi, 264);
UVDSO_AT(page_bytes, 268);
UVDSO_AT(features, 272);
UVDSO_AT(reserved_280, 280);
UVDSO_AT(memory_counter, 320);
UVDSO_AT(reserved_328, 328);
UVDSO_AT(reserved_384, 384);
#undef UVDSO_AT
_Static_assert(offsetof(struct uvdso_scale, mult) == 8, "uvdso_scale: mult");
_Static_assert(offsetof(struct uvdso_scale, shift) == 12, "uvdso_scale: shift");
_Static_assert(sizeof(struct uvdso_scale) == 16, "uvdso_scale");
_Static_assert(offsetof(struct uvdso_basetime, nsec) == 8, "uvdso_basetime: nsec");
_Static_assert(sizeof(struct uvdso_basetime) == 16, "uvdso_basetime");
_Static_assert(sizeof(struct uvdso_page) == UVDSO_DATA_BYTES, "uvdso_page");

#endif
