//! riscv64: returning from a signal handler.

// The kernel puts this address into the return address register of a handler. Unwinders know the
// frame by its two instructions; the table only says that it is a signal's, so that the program
// counter above it is taken as it is and not as one behind a call.
core::arch::global_asm!(
    ".pushsection .text.__vdso_rt_sigreturn, \"ax\", %progbits",
    ".balign 16",
    ".globl __vdso_rt_sigreturn",
    ".type __vdso_rt_sigreturn, %function",
    "__vdso_rt_sigreturn:",
    ".cfi_startproc",
    ".cfi_signal_frame",
    "li a7, {rt_sigreturn}",
    "ecall",
    ".cfi_endproc",
    ".size __vdso_rt_sigreturn, . - __vdso_rt_sigreturn",
    ".popsection",
    rt_sigreturn = const 139,
);
