"""Goes every way through the image and asks for a backtrace at each instruction.

gdb has attached to `unwind wait` and read frames.py before. The file that UVDSO_WAYS names has a line
for each instruction: its offset in the image, what it is (branch, call, or plain), and the offsets of
those that may be next. The file's first lines name the exported functions and their offsets.

Where a branch has not yet led to an instruction that was not seen, it is made to lead there: by $pc,
whatever the condition says. The stack is the same on either way, and the stack is what a backtrace
is about.
"""
import collections
import os

import gdb

# No way through a function that is led past what repeats is as long.
LONGEST = 1000

FUNCTIONS = {}
KINDS = {}
NEXT = {}
with open(os.environ["UVDSO_WAYS"]) as ways:
    for line in ways:
        first, *rest = line.split()
        if first == "function":
            FUNCTIONS[rest[0]] = int(rest[1], 16)
        else:
            KINDS[int(first, 16)] = rest[0]
            NEXT[int(first, 16)] = [int(word, 16) for word in rest[1:]]

BEFORE = {}
for place, ways in NEXT.items():
    for way in ways:
        BEFORE.setdefault(way, []).append(place)


def distances(unseen):
    """From each instruction, how many there are to the nearest that was not seen."""
    found = dict.fromkeys(unseen, 0)
    border = collections.deque(unseen)
    while border:
        way = border.popleft()
        for place in BEFORE.get(way, []):
            if place not in found:
                found[place] = found[way] + 1
                border.append(place)
    return found


OUT = distances([place for place, ways in NEXT.items() if not ways])


def step(at, unseen):
    """Over one instruction, to the one next to it that leads to the unseen ones."""
    gdb.execute("stepi", to_string=True)
    pc = number("(long)$pc")
    if pc == BASE + at:
        # It faulted: on its own way it would not have been reached like this.
        gdb.execute(f"set $pc = {BASE + NEXT[at][-1]}")
    elif KINDS[at] == "branch":
        far = distances(unseen)
        if not any(way in far for way in NEXT[at]):
            # Nothing is left to see from here: out, and not round and round as for a writer.
            far = OUT
        wanted = min(NEXT[at], key=lambda way: far.get(way, LONGEST))
        if far.get(wanted, LONGEST) < far.get(pc - BASE, LONGEST):
            gdb.execute(f"set $pc = {BASE + wanted}")
            return 1
    return 0


def walk(unseen):
    """Through one call, from a function's first instruction to its return."""
    seen = good = forced = 0
    entry = number("(long)$rsp")
    leaves = number("*(long *)$rsp")
    for _ in range(LONGEST):
        at = number("(long)$pc") - BASE
        if at in unseen:
            unseen.discard(at)
            seen += 1
            if reaches_main(leaves):
                good += 1
            else:
                print(f"lost at {at:#x}")
        forced += step(at, unseen)
        if number("(long)$pc") == leaves and number("(long)$rsp") > entry:
            return seen, good, forced
    raise gdb.error(f"no end, at {at:#x}")


def walk_all():
    good = calls = forced = 0
    unseen = set(NEXT)
    for function, offset in FUNCTIONS.items():
        stop = gdb.Breakpoint(f"*{BASE + offset}", internal=True)
        while offset in distances(unseen):
            gdb.execute("continue", to_string=True)
            found, right, made = walk(unseen)
            if found == 0:
                raise gdb.error(f"{function} does not lead where it should")
            good += right
            forced += made
            calls += 1
        stop.delete()
    for place in sorted(unseen):
        print(f"never at {place:#x}")
    print(f"instructions {len(NEXT)} good {good} calls {calls} forced {forced}")


# A function may get somewhere with a register that its own way would have filled.
gdb.execute("handle SIGSEGV SIGBUS SIGILL nopass", to_string=True)
try:
    walk_all()
finally:
    gdb.execute("kill")
