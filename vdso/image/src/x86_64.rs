//! x86_64: the functions under the names that C libraries give them too.

/// A name without the prefix, at the same address and size, which a program may override.
macro_rules! weak_alias {
    ($($alias:literal = $function:literal;)*) => {
        core::arch::global_asm!($(
            concat!(".weak ", $alias),
            concat!(".type ", $alias, ", @function"),
            concat!(".set ", $alias, ", ", $function),
        )*);
    };
}

weak_alias! {
    "clock_gettime" = "__vdso_clock_gettime";
    "clock_getres" = "__vdso_clock_getres";
    "gettimeofday" = "__vdso_gettimeofday";
    "time" = "__vdso_time";
    "getcpu" = "__vdso_getcpu";
}
