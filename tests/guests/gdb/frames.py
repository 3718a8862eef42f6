"""What the scripts that walk through the image ask gdb; read before each of them."""
import gdb

gdb.execute("set pagination off")
gdb.execute("set confirm off")


def auxiliary(name):
    """An entry of the program's auxiliary vector."""
    lines = gdb.execute("info auxv", to_string=True).splitlines()
    return next(int(line.split()[-1], 0) for line in lines if name in line.split())


# Where the image is, of two pages.
BASE = auxiliary("AT_SYSINFO_EHDR")
IMAGE = range(BASE, BASE + 2 * 4096)


def number(expression):
    # Where a row is wrong, gdb may take another frame for the one that it stopped in.
    gdb.newest_frame().select()
    return int(gdb.parse_and_eval(expression))


def reaches_main(leaves):
    """Whether the first frame outside of the image is main's, right behind the call.

    A guess may lead to main as well, by way of frames that are none.
    """
    try:
        frame = gdb.newest_frame()
        while frame is not None and frame.pc() in IMAGE:
            frame = frame.older()
        return frame is not None and frame.name() == "main" and frame.pc() == leaves
    except gdb.error:
        # Without a table it may guess a frame at an address that nothing is mapped at.
        return False
