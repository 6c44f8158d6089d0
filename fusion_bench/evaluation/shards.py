"""Many queries in shards: each is a view of some queries, and threads take one after another.

No query depends on another, so neither the shards nor the threads change a value. A shard's
derived arrays fit the caches better than those of a million queries would, and where the data are
mapped from disk, only a few shards are in memory at a time.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np

from fusion_bench.config.limits import MOST_WORKERS
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import ConfigError

T = TypeVar("T")

#: The environment variable that fixes the number of threads.
THREADS: Final = "FUSION_BENCH_THREADS"


@dataclass(frozen=True)
class ShardLimits:
    """Limits of shards: they bound memory, and change no value.

    Attributes:
        candidates: Of one shard, about; fewer are not divided.
        cached_candidates: Of more, no shard is kept: what derives from it is made again in each
            call.
    """

    candidates: int = 2_000_000
    cached_candidates: int = 60_000_000


DEFAULT_LIMITS: Final = ShardLimits()


def shards(runs: AlignedRuns, limits: ShardLimits = DEFAULT_LIMITS) -> Iterator[AlignedRuns]:
    """All queries, some at a time, in their order; only one shard where there are not many."""
    bounds = _shard_bounds(runs, limits)
    if len(bounds) == 2:
        yield runs
        return
    is_cached = int(runs.offsets[-1]) <= limits.cached_candidates
    for start, stop in pairwise(bounds):
        yield _cached_shard(runs, start, stop) if is_cached else runs.between(start, stop)


def over_shards(
    work: Callable[[AlignedRuns], T],
    runs: AlignedRuns,
    threads: int | None = None,
    limits: ShardLimits = DEFAULT_LIMITS,
) -> Iterator[T]:
    """What ``work`` makes of each shard, in their order.

    Args:
        work: Free of side effects.
        runs: Aligned runs, in memory or mapped.
        threads: So many shards at a time; None = as the environment variable says, or one for
            each processor.
        limits: How much a shard holds.

    Raises:
        ConfigError: A number of threads that is not a whole number above 0.
    """
    count = min(threads_of(threads), len(_shard_bounds(runs, limits)) - 1)
    if count == 1:
        yield from map(work, shards(runs, limits))
        return
    with ThreadPoolExecutor(count) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for shard in shards(runs, limits):
                waiting.append(pool.submit(work, shard))
                if len(waiting) > count:  # no more shards in memory than threads, and one ahead
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def threads_of(given: int | None) -> int:
    """How many threads to use at most."""
    text = str(given) if given is not None else os.environ.get(THREADS, "")
    if not text:
        has_affinity = hasattr(os, "sched_getaffinity")  # those that this process may use
        return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WORKERS))
    if not (is_short and 0 < int(text) <= MOST_WORKERS):
        where = "threads" if given is not None else THREADS
        raise ConfigError(f"{where}: {text!r:.60} is not a whole number from 1 to {MOST_WORKERS:,}")
    return int(text)


def _shard_bounds(runs: AlignedRuns, limits: ShardLimits) -> list[int]:
    """Where shards begin and end, as query numbers."""
    queries, candidates = len(runs.queries), int(runs.offsets[-1])
    count = max(min(round(candidates / limits.candidates), queries), 1)
    targets = np.arange(1, count) * (candidates / count)
    inner = np.searchsorted(runs.offsets, targets)
    return sorted({0, *inner.tolist(), queries})


@cached_by_view()
def _cached_shard(runs: AlignedRuns, start: int, stop: int) -> AlignedRuns:
    return runs.between(start, stop)
