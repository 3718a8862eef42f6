/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Faults and signals: a page that cannot be written, a fault inside the image that an unwinder finds
 * its way out of, and the trampolines that a signal handler returns to.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "host.h"

static sigjmp_buf out;
static bool reached_caller;

/*
 * libgcc asks this for unwind tables (the linker puts it in place of the real one, --wrap). A libc
 * knows the vDSO that the kernel mapped, not ours.
 */
int __real__dl_find_object(void *at, struct dl_find_object *found);
int __wrap__dl_find_object(void *at, struct dl_find_object *found);

int __wrap__dl_find_object(void *at, struct dl_find_object *found)
{
	const unsigned char *code = at;
	if (code < image_base || code >= image_base + image_bytes)
		return __real__dl_find_object(at, found);
	const ElfW(Ehdr) *header = (const void *)image_base;
	const ElfW(Phdr) *segment = (const void *)(image_base + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		if (segment[i].p_type != PT_GNU_EH_FRAME)
			continue;
		memset(found, 0, sizeof *found);
		found->dlfo_map_start = (void *)image_base;
		found->dlfo_map_end = (void *)(image_base + image_bytes);
		found->dlfo_eh_frame = (void *)(image_base + segment[i].p_vaddr);
		return 0;
	}
	return -1;
}

/* The outermost function that a backtrace has to reach. */
__attribute__((noinline)) static void caller(void (*call)(void))
{
	call();
	__asm__ volatile("" : : : "memory");
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *count)
{
	_Unwind_Ptr at = _Unwind_GetRegionStart(context);
	/* The lowest bit of an Arm address is its instruction set. */
	if ((at & ~(_Unwind_Ptr)1) == ((_Unwind_Ptr)caller & ~(_Unwind_Ptr)1))
		reached_caller = true;
	return ++*(int *)count < 64 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void look_back(void)
{
	int count = 0;
	reached_caller = false;
	_Unwind_Backtrace(frame, &count);
}

#if defined(__x86_64__) || defined(__i386__)
/* QEMU 7.2 enters handlers with the stack aligned to 8 bytes. */
__attribute__((force_align_arg_pointer))
#endif
static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	look_back();
	siglongjmp(out, 1);
}

static void write_page(void)
{
	((volatile struct uvdso_page *)(image_base - UVDSO_SLOTS * image_slot_bytes))->seq = 1;
}

/* An address that no program can write. */
#define NOWHERE ((void *)16)

static void fault_gettime(void) { image.gettime(0, NOWHERE); }
static void fault_gettime64(void) { image.gettime64(0, NOWHERE); }
static void fault_coarse(void) { image.gettime(5, NOWHERE); }
static void fault_getres(void) { image.getres(0, NOWHERE); }
static void fault_getres64(void) { image.getres64(0, NOWHERE); }
static void fault_tv(void) { image.gettimeofday(NOWHERE, NULL); }
static void fault_tz(void) { image.gettimeofday(NULL, NOWHERE); }
static void fault_time(void) { image.time(NOWHERE); }

static void expect_fault(const char *what, void (*call)(void), bool unwinds)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSEGV, &action, NULL);
	if (!sigsetjmp(out, 1)) {
		caller(call);
		CHECK(false, "%s: no fault", what);
	} else {
		CHECK(!unwinds || reached_caller, "%s: the backtrace does not reach the caller", what);
		passed++;
	}
	signal(SIGSEGV, SIG_DFL);
}

static void check_faults(void)
{
#if defined(__arm__)
	/* No tables there. */
	const bool unwinds = false;
#else
	const bool unwinds = true;
#endif
	uint32_t seq = page->seq;
	expect_fault("a write to the page", write_page, unwinds);
	CHECK(page->seq == seq, "the page was written");
	expect_fault("gettime", fault_gettime, unwinds);
	expect_fault("gettime64", fault_gettime64, unwinds);
	expect_fault("coarse", fault_coarse, unwinds);
	expect_fault("getres", fault_getres, unwinds);
	expect_fault("getres64", fault_getres64, unwinds);
	expect_fault("gettimeofday", fault_tv, unwinds);
	expect_fault("timezone", fault_tz, unwinds);
	if (image.time)
		expect_fault("time", fault_time, unwinds);
}

#if defined(__i386__)
/* What the kernel takes; libc's own call would put its own trampoline in. */
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	unsigned long mask[2];
};
#define SA_RESTORER 0x04000000

static volatile int handled;

static void on_signal(int signal)
{
	(void)signal;
	look_back();
	handled++;
}

static void raise_signal(void)
{
	syscall(SYS_kill, getpid(), SIGUSR1);
}

static void check_trampoline(const char *what, void *restorer, unsigned long flags)
{
	struct kernel_sigaction action = {
		.handler = (void *)on_signal, .flags = SA_RESTORER | flags, .restorer = restorer};
	CHECK(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8) == 0, "%s", what);
	for (int i = 1; i <= 3; i++) {
		handled = 0;
		caller(raise_signal);
		CHECK(handled == 1, "%s: handled %d times", what, handled);
		CHECK(reached_caller, "%s: the backtrace ends at the trampoline", what);
	}
}

static void check_trampolines(void)
{
	check_trampoline("__kernel_sigreturn", image.sigreturn, 0);
	check_trampoline("__kernel_rt_sigreturn", image.rt_sigreturn, SA_SIGINFO);
	/* The registers of int 0x80. */
	long answer;
	__asm__ volatile("call *%1" : "=a"(answer) : "r"(image.vsyscall), "0"(SYS_getpid) : "memory");
	CHECK(answer == getpid(), "__kernel_vsyscall answers %ld", answer);
}
#elif defined(__aarch64__) || defined(__riscv)
static void check_trampolines(void)
{
	/* As the handler itself: it returns from the signal before anything else is done. */
	struct sigaction action;
	memset(&action, 0, sizeof action);
	memcpy(&action.sa_handler, &image.rt_sigreturn, sizeof image.rt_sigreturn);
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0, "rt_sigreturn");
	for (int i = 0; i < 3; i++)
		CHECK(syscall(SYS_kill, getpid(), SIGUSR1) == 0, "rt_sigreturn");
}
#else
static void check_trampolines(void) {}
#endif

void check_signals(void)
{
	page_clear();
	for (int i = 0; i < SERVED_CLOCKS; i++)
		page_serve(served_clocks[i], 1, 1);
	check_faults();
	check_trampolines();
}
