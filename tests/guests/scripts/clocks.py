"""Reads every clock that a vDSO serves."""
import time

CLOCKS = {
    "realtime": 0,
    "monotonic": 1,
    "monotonic_raw": 4,
    "realtime_coarse": 5,
    "monotonic_coarse": 6,
    "boottime": 7,
    "tai": 11,
}

for key, clock in CLOCKS.items():
    for _ in range(100):
        nanos = time.clock_gettime_ns(clock)
    print(f"{key} {nanos // 10**9}.{nanos % 10**9:09}")
    time.clock_getres(clock)
nanos = time.time_ns()
print(f"realtime {nanos // 10**9}.{nanos % 10**9:09}")
