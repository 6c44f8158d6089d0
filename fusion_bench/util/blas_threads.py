"""How long the threads of OpenBLAS, which numpy and scipy load, spin before they sleep."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

VARIABLE: Final = "OPENBLAS_THREAD_TIMEOUT"
#: Cycles, as a power of two: a third of a millisecond, longer than from one product to the next of
#: a loop. By default it is 26: each thread spins for 20 ms after it starts and after each product,
#: which costs as much processor time as the comparison of some systems on a hundred queries.
CYCLES: Final = "20"


@contextmanager
def short_waits() -> Iterator[None]:
    """An OpenBLAS that is loaded inside lets its idle threads sleep early.

    It reads the variable when it is loaded. No process that starts later inherits it, and what the
    user has set stays.
    """
    if VARIABLE in os.environ:
        yield
        return
    os.environ[VARIABLE] = CYCLES
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
