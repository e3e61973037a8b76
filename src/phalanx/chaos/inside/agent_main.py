"""The `__main__` of an agent and a lead whose wall clock can be made to jump: `time.time` plus eight bytes of a file.

Written into the folder from which `phalanx chaos` starts them, in front of the real one. The monotonic clock stays
what it is, as it does when an administrator sets a machine's clock.
"""

import mmap
import os
import struct
import sys
import time

#: Seconds that are added to the wall clock: one double, in the order of the machine.
OFFSET = struct.Struct("=d")


def jumpy(folder: str) -> None:
    """Put a `time.time` in place that reads its offset from `clock-PID` in the folder at each call."""
    path = os.path.join(folder, "clock-%d" % os.getpid())
    with open(path, "w+b") as file:
        file.write(OFFSET.pack(0.0))
        file.flush()
        offset = mmap.mmap(file.fileno(), OFFSET.size)
    real, real_ns, read = time.time, time.time_ns, OFFSET.unpack_from

    def now() -> float:
        return real() + float(read(offset)[0])

    def now_ns() -> int:
        return real_ns() + int(float(read(offset)[0]) * 1e9)

    time.time, time.time_ns = now, now_ns


if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    jumpy(os.path.dirname(_home))
    sys.argv[0] = os.path.abspath(__file__)  # an agent starts its lead from the same file
    with open(os.path.join(_home, "real_main.py"), encoding="utf-8") as _file:
        exec(compile(_file.read(), _file.name, "exec"))  # noqa: S102 - the real one, in its usual place
