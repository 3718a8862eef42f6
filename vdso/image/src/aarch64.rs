//! aarch64: returning from a signal handler.

// The kernel puts this address into the link register of a handler. Unwinders know the frame by its
// two instructions and need no table for it; one that described it wrongly would only mislead them.
// They look for the function at the return address less one, so something must stand before the
// first instruction: a `nop` (four, so that the function is aligned). No landing pad: it is returned to, never called. No type either, as
// in Linux's image.
core::arch::global_asm!(
    ".pushsection .text.__kernel_rt_sigreturn, \"ax\", %progbits",
    ".balign 16",
    "nop; nop; nop; nop",
    ".globl __kernel_rt_sigreturn",
    "__kernel_rt_sigreturn:",
    "mov x8, {rt_sigreturn}",
    "svc #0",
    ".size __kernel_rt_sigreturn, . - __kernel_rt_sigreturn",
    ".popsection",
    rt_sigreturn = const 139,
);
