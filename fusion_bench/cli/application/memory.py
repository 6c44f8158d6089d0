"""Too little memory: the least that a process must be allowed, and errors that say so.

With less, libraries of linear algebra end the process or wait without end as they are loaded.
"""

from __future__ import annotations

from typing import Final

from fusion_bench.errors import FusionBenchError

#: Bytes of addresses that NumPy, SciPy and pyarrow need with two threads.
LEAST_ADDRESSES: Final = 480 << 20


def check_address_limit() -> None:
    """Refuse to start where ``ulimit -v`` allows too little.

    Raises:
        FusionBenchError: It does.
    """
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise FusionBenchError(
            f"not enough memory: the process may have {limit >> 20} MiB of addresses (ulimit -v), "
            f"and needs {LEAST_ADDRESSES >> 20} MiB: raise the limit"
        )


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether too little memory is behind an error; libraries in C++ have errors of their own."""
    while error is not None:
        if isinstance(error, MemoryError) or "std::bad_alloc" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
