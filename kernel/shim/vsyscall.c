// SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0
/*
 * What Linux's timekeeping calls: hands its state to the Rust writer.
 *
 * It stands where the kernel's own kernel/time/vsyscall.c would, and offers the same functions. The
 * page below the image is ours as a whole, from offset 0: __vvar_page, or one of our own where the
 * kernel maps it by a symbol. Nothing of struct vdso_data is written, and nothing reads it.
 *
 * All of it runs under timekeeper_lock with interrupts off. Printing there may only be deferred: a
 * console that asks for the time would wait for the lock for ever.
 */
#include <linux/cache.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/linkage.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/stddef.h>
#include <linux/time_namespace.h>
#include <linux/timekeeper_internal.h>
#include <vdso/clocksource.h>

#include "timekeeping_internal.h"
#include "uvdso.h"

#ifdef CONFIG_X86_64
/* <asm/vvar.h> would come with the layout of the kernel's own data. */
extern char __vvar_page;
#define uvdso_page() ((void *)&__vvar_page)
/* Linux writes the descriptor of segment 0x7b on each CPU before a program runs there. */
#define UVDSO_FEATURES UVDSO_FEATURE_GETCPU_SEGMENT_LIMIT
#elif defined(CONFIG_ARM64)
/* In the kernel's own image, where it is found by its symbol; Linux keeps its data apart. */
extern char uvdso_store[];
char uvdso_store[PAGE_SIZE] __page_aligned_bss;
#define uvdso_page() ((void *)uvdso_store)
#define UVDSO_FEATURES 0
#else
#error "no page is known for this architecture"
#endif

/* Linux numbers its modes by architecture, and a program's reader may know fewer of them. */
static s32 uvdso_clock_mode(const struct clocksource *clock)
{
	switch (clock->vdso_clock_mode) {
#ifdef CONFIG_X86_64
	case VDSO_CLOCKMODE_TSC:
		return UVDSO_MODE_COUNTER;
#elif defined(CONFIG_ARM64)
	case VDSO_CLOCKMODE_ARCHTIMER:
		return UVDSO_MODE_COUNTER;
	case VDSO_CLOCKMODE_ARCHTIMER_NOCOMPAT:
		return UVDSO_MODE_COUNTER_64BIT_ONLY;
#endif
	default:
		return UVDSO_MODE_NONE;
	}
}

void update_vsyscall(struct timekeeper *tk)
{
	static bool formatted;
	const struct uvdso_timekeeper state = {
		.cycle_last = tk->tkr_mono.cycle_last,
		.raw_cycle_last = tk->tkr_raw.cycle_last,
		.mask = tk->tkr_mono.mask,
		.raw_mask = tk->tkr_raw.mask,
		.xtime_sec = tk->xtime_sec,
		.xtime_nsec = tk->tkr_mono.xtime_nsec,
		.raw_sec = tk->raw_sec,
		.raw_xtime_nsec = tk->tkr_raw.xtime_nsec,
		.wall_to_monotonic_sec = tk->wall_to_monotonic.tv_sec,
		.wall_to_monotonic_nsec = tk->wall_to_monotonic.tv_nsec,
		.monotonic_to_boot_sec = tk->monotonic_to_boot.tv_sec,
		.monotonic_to_boot_nsec = tk->monotonic_to_boot.tv_nsec,
		/* Linux 6.15 keeps it apart, so that a new rate cannot move it back. */
		.coarse_nsec = tk->tkr_mono.xtime_nsec >> tk->tkr_mono.shift,
		.mult = tk->tkr_mono.mult,
		.shift = tk->tkr_mono.shift,
		.raw_mult = tk->tkr_raw.mult,
		.raw_shift = tk->tkr_raw.shift,
		.tai_offset = tk->tai_offset,
		.clock_mode = uvdso_clock_mode(tk->tkr_mono.clock),
		.hrtimer_res = hrtimer_resolution,
		.tick_nsec = TICK_NSEC,
	};
	s32 refused;

	if (!formatted) {
		uvdso_format(uvdso_page(), UVDSO_FEATURES);
		formatted = true;
	}
	refused = uvdso_update(uvdso_page(), &state);
	if (refused)
		printk_deferred_once(KERN_ERR "uvdso: update refused: %d\n", refused);
}

/* Called without the lock; the page has one writer at a time. */
void update_vsyscall_tz(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&timekeeper_lock, flags);
	uvdso_update_tz(uvdso_page(), sys_tz.tz_minuteswest, sys_tz.tz_dsttime);
	raw_spin_unlock_irqrestore(&timekeeper_lock, flags);
}

#ifdef CONFIG_TIME_NS
void uvdso_timens_page(struct time_namespace *ns);

/* Called once for each namespace, before its first task runs; the page is zeroed. */
void uvdso_timens_page(struct time_namespace *ns)
{
	const struct timespec64 *mono = &ns->offsets.monotonic;
	const struct timespec64 *boot = &ns->offsets.boottime;

	uvdso_setup_timens(page_address(ns->vvar_page), UVDSO_FEATURES, mono->tv_sec,
			   mono->tv_nsec, boot->tv_sec, boot->tv_nsec);
}
#endif
