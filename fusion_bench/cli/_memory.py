"""The least memory that a process must be allowed.

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
