/*
 * The shape of an i386 image: names, versions, an entry point, and signal frames. It computes
 * nothing; the rules look at the file alone.
 *
 * LATE_FRAME: the frame begins at the trampoline. PLAIN_FRAME: it is not marked as a signal frame.
 * NO_KERNEL_NAMES: no entry point and no trampolines. NO_LATE_NAMES: as in Linux's older images.
 * LATE_VERSION: one of them under another version.
 *
 * The sizes of trampolines count the padding behind them. CODE_IN_PADDING: there is an instruction
 * in it. LONG_PADDING: it reaches beyond the next multiple of 16. PADDED_FUNCTION: functions, too,
 * count the padding behind them.
 */
    .text

    .macro function name, room=32
    .globl \name
    .type \name, @function
    .balign 64, 0xcc
\name:
    .cfi_startproc
    int $0x80
    ret
    .skip \room, 0x90
    .cfi_endproc
#ifdef PADDED_FUNCTION
    .balign 16, 0x90
#endif
    .size \name, . - \name
    .endm

    function __vdso_clock_gettime
    function __vdso_clock_gettime64
    function __vdso_clock_getres
    function __vdso_gettimeofday
    function __vdso_time
#ifndef NO_LATE_NAMES
    function __vdso_getcpu
#ifdef LATE_VERSION
    function time64_resolution
    .symver time64_resolution, __vdso_clock_getres_time64@@LINUX_2.5, remove
#else
    function __vdso_clock_getres_time64
#endif
#endif
#ifndef NO_KERNEL_NAMES
    function __kernel_vsyscall, 0
#endif

    .macro trampoline name
    .balign 64, 0xcc
#ifndef LATE_FRAME
    /* lea 0(%esi), %esi: padding, whose last byte is the frame's first. */
    .byte 0x8d, 0x76
    .cfi_startproc simple
#ifndef PLAIN_FRAME
    .cfi_signal_frame
#endif
    .cfi_def_cfa %esp, 4
    .cfi_offset %eip, 0
    .byte 0
#endif
    .globl \name
    .type \name, @function
\name:
#ifdef LATE_FRAME
    .cfi_startproc simple
    .cfi_signal_frame
    .cfi_def_cfa %esp, 4
    .cfi_offset %eip, 0
#endif
    int $0x80
    .cfi_endproc
#ifdef CODE_IN_PADDING
    ret
#endif
#ifdef LONG_PADDING
    .skip 16, 0x90
#endif
    .balign 16, 0x90
    .size \name, . - \name
    .endm

#ifndef NO_KERNEL_NAMES
    trampoline __kernel_sigreturn
    trampoline __kernel_rt_sigreturn
#endif
