//! i386: entering the kernel, returning from signal handlers, and the address of the code.

// All of it is in one section, in this order: behind `__kernel_vsyscall`, which is called, there are
// functions that are not, so whoever patches it (over up to 35 bytes) breaks nothing else.

// `__kernel_vsyscall` is the image's entry point (AT_SYSINFO points to it): programs call it instead
// of `int 0x80`. Here it is that instruction and nothing else, whatever the CPU: registers are those
// of `int 0x80`, and nothing is pushed.
core::arch::global_asm!(
    ".pushsection .text.entry, \"ax\", %progbits",
    ".balign 16",
    ".globl __kernel_vsyscall",
    ".type __kernel_vsyscall, %function",
    "__kernel_vsyscall:",
    ".cfi_startproc",
    "int 0x80",
    "ret",
    // What is shorter than 16 bytes is not patched at all.
    ".fill 13, 1, 0xcc",
    ".cfi_endproc",
    ".size __kernel_vsyscall, . - __kernel_vsyscall",
    ".popsection",
);

// `vdso::arch::data_page` calls this to learn where it is.
core::arch::global_asm!(
    ".pushsection .text.entry, \"ax\", %progbits",
    ".balign 16",
    ".globl vdso_return_address",
    ".hidden vdso_return_address",
    ".type vdso_return_address, %function",
    "vdso_return_address:",
    ".cfi_startproc",
    "mov eax, [esp]",
    "ret",
    ".cfi_endproc",
    ".size vdso_return_address, . - vdso_return_address",
    ".popsection",
);

// Handlers return to one of these two. The frame above is the interrupted code's, and all of its
// registers lie in the signal frame on the stack: `saved` says for each where, counted from ESP.
// The kernel's `struct sigcontext` (arch/x86/include/uapi/asm/sigcontext.h) has EDI at 16, then ESI,
// EBP, ESP, EBX, EDX, ECX, EAX, and EIP at 56. The old frame has it behind the signal's number; the
// other one behind number, two pointers, siginfo (128 bytes) and the head of the context (20).
//
// The directives for expressions are bytes: 0x0f is DW_CFA_def_cfa_expression, 0x10
// DW_CFA_expression, 0x74 DW_OP_breg4 (ESP), 0x06 DW_OP_deref. Offsets are two-byte SLEB128.
//
// The table begins one byte early: an unwinder looks up the return address less one, which for a
// handler's is the byte before the function.
core::arch::global_asm!(
    ".macro uvdso_saved register, at",
    ".cfi_escape 0x10, \\register, 3, 0x74, ((\\at) & 0x7f) | 0x80, (\\at) >> 7",
    ".endm",
    ".macro uvdso_frame context",
    ".cfi_escape 0x0f, 4, 0x74, ((\\context + 28) & 0x7f) | 0x80, (\\context + 28) >> 7, 0x06",
    "uvdso_saved 0, \\context + 44",
    "uvdso_saved 1, \\context + 40",
    "uvdso_saved 2, \\context + 36",
    "uvdso_saved 3, \\context + 32",
    "uvdso_saved 5, \\context + 24",
    "uvdso_saved 6, \\context + 20",
    "uvdso_saved 7, \\context + 16",
    "uvdso_saved 8, \\context + 56",
    ".endm",
    ".pushsection .text.entry, \"ax\", %progbits",
    ".balign 16",
    ".fill 15, 1, 0x90",
    ".cfi_startproc",
    ".cfi_signal_frame",
    "uvdso_frame 4",
    "nop",
    ".globl __kernel_sigreturn",
    ".type __kernel_sigreturn, %function",
    "__kernel_sigreturn:",
    "pop eax",
    "uvdso_frame 0",
    "mov eax, {sigreturn}",
    "int 0x80",
    ".cfi_endproc",
    ".size __kernel_sigreturn, . - __kernel_sigreturn",
    ".popsection",
    ".pushsection .text.entry, \"ax\", %progbits",
    ".balign 16",
    ".fill 15, 1, 0x90",
    ".cfi_startproc",
    ".cfi_signal_frame",
    "uvdso_frame 160",
    "nop",
    ".globl __kernel_rt_sigreturn",
    ".type __kernel_rt_sigreturn, %function",
    "__kernel_rt_sigreturn:",
    "mov eax, {rt_sigreturn}",
    "int 0x80",
    ".cfi_endproc",
    ".size __kernel_rt_sigreturn, . - __kernel_rt_sigreturn",
    ".popsection",
    sigreturn = const 119,
    rt_sigreturn = const 173,
);
