"""Steps through the functions of the image and asks for a backtrace at every instruction.

gdb has attached to `unwind wait` and read frames.py before. What it finds is printed as lines of a
word and a number, each lost backtrace as a line of its own.
"""
import gdb

# Calls of each function that are stepped through: clock_gettime and its like are called with every
# id from 0 to 11 in turn.
FUNCTIONS = {
    "__vdso_clock_gettime": 12,
    "__vdso_clock_gettime_ns": 12,
    "__vdso_clock_getres": 12,
    "__vdso_gettimeofday": 1,
    "__vdso_time": 1,
    "__vdso_getcpu": 1,
}
# A call that waits for a writer repeats a few instructions; this many are enough to see them all.
LONGEST = 150


def step_through(seen):
    """From a function's first instruction to its return; returns (good, lost) backtraces."""
    good = lost = 0
    entry = number("(long)$rsp")
    leaves = number("*(long *)$rsp")
    for _ in range(LONGEST):
        seen.add(number("(long)$pc"))
        if reaches_main(leaves):
            good += 1
        else:
            lost += 1
            print(f"lost at {number('(long)$pc'):#x}")
        gdb.execute("stepi", to_string=True)
        if number("(long)$pc") == leaves and number("(long)$rsp") > entry:
            return good, lost
    gdb.Breakpoint(f"*{leaves}", temporary=True, internal=True)
    gdb.execute("continue", to_string=True)
    return good, lost


try:
    for function, calls in FUNCTIONS.items():
        seen = set()
        good = lost = 0
        stop = gdb.Breakpoint(f"*(long)&{function}", internal=True)
        for _ in range(calls):
            gdb.execute("continue", to_string=True)
            # The name without the prefix is at the same address; which one gdb takes is its own affair.
            if gdb.newest_frame().name() not in (function, function.removeprefix("__vdso_")):
                print(f"misnamed {gdb.newest_frame().name()}")
            found, missed = step_through(seen)
            good += found
            lost += missed
        stop.delete()
        print(f"{function} good {good} lost {lost} instructions {len(seen)}")
except gdb.error as error:
    # Without a table it may lose its way so thoroughly that it cannot even continue.
    print(f"gave up: {error}")
gdb.execute("kill")
