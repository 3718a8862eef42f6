//! What a test forbids a command that it starts.

/// A sandbox that forbids ptrace, as containers do.
///
/// # Errors
/// That the kernel sets no filter.
pub(crate) fn forbid_ptrace() -> std::io::Result<()> {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap_or(0),
        jt,
        jf,
        k,
    };
    let ptrace = u32::try_from(libc::SYS_ptrace).unwrap_or(0);
    let denied = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, ptrace),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, denied),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: sets an attribute of this process.
    let first = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the filter and its steps are live; the kernel copies them.
    let second = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter, 0, 0) };
    if first == 0 && second == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
