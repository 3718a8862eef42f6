/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The architecture's counter, read by this program itself.
 *
 * Emulators leave some counters out: Arm's CNTVCT and aarch64's CNTVCTSS are undefined instructions
 * to them. The handler below supplies a value, so that the image can be tested there; and it counts,
 * so that a test can say that a page without a counter never touched one.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "host.h"

volatile unsigned counter_traps;

#if defined(__arm__)
/* 62.5 MHz, from the kernel's clock. */
static uint64_t emulated_counter(void)
{
	struct spec now;
	kernel_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.sec * 1000000000 + (uint64_t)now.nsec) / 16;
}
#endif

uint64_t counter_now(void)
{
#if defined(__x86_64__) || defined(__i386__)
	uint32_t low, high;
	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t cycles;
	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(cycles) : : "memory");
	return cycles;
#elif defined(__riscv)
	uint64_t cycles;
	__asm__ volatile("fence; rdtime %0; fence" : "=r"(cycles) : : "memory");
	return cycles;
#elif defined(__arm__)
	uint32_t low, high;
	__asm__ volatile("isb; mrrc p15, 1, %0, %1, c14; isb" : "=r"(low), "=r"(high) : : "memory");
	return (uint64_t)high << 32 | low;
#endif
}

#if defined(__arm__) || defined(__aarch64__)
static void on_undefined(int signal, siginfo_t *info, void *context)
{
	(void)info;
	ucontext_t *interrupted = context;
	uint32_t instruction;
#if defined(__arm__)
	memcpy(&instruction, (void *)interrupted->uc_mcontext.arm_pc, sizeof instruction);
	/* mrrc p15, 1, Rt, Rt2, c14 */
	if ((instruction & 0x0ff00fff) == 0x0c500f1e) {
		uint64_t cycles = emulated_counter();
		unsigned long *registers = &interrupted->uc_mcontext.arm_r0;
		registers[instruction >> 12 & 15] = (uint32_t)cycles;
		registers[instruction >> 16 & 15] = (uint32_t)(cycles >> 32);
		interrupted->uc_mcontext.arm_pc += 4;
		counter_traps++;
		return;
	}
#else
	memcpy(&instruction, (void *)interrupted->uc_mcontext.pc, sizeof instruction);
	/* mrs Rt, s3_3_c14_c0_6 */
	if ((instruction & ~31u) == 0xd53be0c0) {
		interrupted->uc_mcontext.regs[instruction & 31] = counter_now();
		interrupted->uc_mcontext.pc += 4;
		counter_traps++;
		return;
	}
#endif
	static const char message[] = "host: an undefined instruction that is no counter\n";
	(void)!write(2, message, sizeof message - 1);
	_exit(128 + signal);
}
#endif

void counter_catch_traps(void)
{
#if defined(__arm__) || defined(__aarch64__)
	struct sigaction action = {.sa_sigaction = on_undefined, .sa_flags = SA_SIGINFO};
	sigaction(SIGILL, &action, NULL);
#endif
}
