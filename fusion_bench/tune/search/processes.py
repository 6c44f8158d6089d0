"""Several processes on one machine: one sampler asks, each process evaluates its own queries.

Queries are dealt out and not trials, so that no data stands twice in memory and a batch stays a
batch everywhere. What is found does not depend on the number of processes, and one that dies costs
only its share of one batch, which is evaluated again.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fusion_bench.config.parameters import Params
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import FusionBenchError
from fusion_bench.tune.space.objective import TuningObjective

__all__ = ["Evaluate", "dealt", "evaluators"]

#: Values per query, shape (T, Q), of T trials.
Evaluate: TypeAlias = Callable[[Sequence[Params]], FloatArray]
#: How often a dead process is replaced before the fault must lie elsewhere.
RETRIES = 2

_problem: TuningObjective | None = None


@contextmanager
def evaluators(problem: TuningObjective, workers: int) -> Iterator[Evaluate]:
    """Evaluate the problem's trials in this process, or in several others.

    Args:
        problem: On the queries that are tuned on.
        workers: How many processes; 1 = this one alone.
    """
    if workers == 1:
        yield problem.evaluate_params
        return
    helpers = [_Helper(problem, part) for part in dealt(problem, workers)]
    try:
        yield lambda trials: _together(helpers, trials)
    finally:
        for helper in helpers:
            helper.close()


def dealt(problem: TuningObjective, workers: int) -> list[IntArray]:
    """Neighbouring queries with about equally many candidates for each process; none is empty."""
    offsets = problem.runs.offsets
    ends = np.searchsorted(offsets, offsets[-1] * np.arange(1, workers) / workers)
    parts = np.split(np.arange(len(problem.runs.queries)), ends)
    return [part for part in parts if len(part)]


def _together(helpers: Sequence[_Helper], trials: Sequence[Params]) -> FloatArray:
    """(T, Q): the same to the last bit as the problem's own values.

    Raises:
        FusionBenchError: A process dies again and again.
    """
    started = [helper.start(trials) for helper in helpers]
    pairs = zip(helpers, started, strict=True)
    found = np.hstack([helper.finish(trials, future) for helper, future in pairs])
    # What one part of the queries cannot be computed for is no result at all.
    found[np.isnan(found).any(axis=1)] = np.nan
    return found


class _Helper:
    """One process with some of the queries."""

    def __init__(self, problem: TuningObjective, part: IntArray) -> None:
        keep = np.zeros(len(problem.runs.queries), dtype=bool)
        keep[part] = True
        some = problem.subset_queries(keep)
        # What was derived from the arrays is made again where it is needed.
        self._problem = replace(some, runs=replace(some.runs, _memo={}))
        self._executor = self._begun()

    def start(self, trials: Sequence[Params]) -> Future[FloatArray]:
        """Send trials."""
        try:
            return self._executor.submit(_evaluate, trials)
        except BrokenProcessPool:  # it died while nobody looked
            self._replace()
            return self._executor.submit(_evaluate, trials)

    def finish(self, trials: Sequence[Params], future: Future[FloatArray]) -> FloatArray:
        """(T, q): the values, from another process where this one died."""
        for _ in range(RETRIES):
            try:
                return future.result()
            except BrokenProcessPool:
                self._replace()
                future = self._executor.submit(_evaluate, trials)
        try:
            return future.result()
        except BrokenProcessPool:
            raise FusionBenchError(
                f"workers: a process was killed {RETRIES + 1} times in a row, often for want of "
                "memory: ask for fewer --workers"
            ) from None

    def close(self) -> None:
        """End the process."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _replace(self) -> None:
        self.close()
        self._executor = self._begun()

    def _begun(self) -> ProcessPoolExecutor:
        # Forking a process that has threads (a sampler's, a progress bar's) can lock up the child.
        server = "forkserver" in multiprocessing.get_all_start_methods()
        return ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("forkserver" if server else "spawn"),
            initializer=_start,
            initargs=(self._problem,),
        )


def _start(problem: TuningObjective) -> None:
    """Remember the problem; leave Ctrl-C to the process that asks."""
    import signal

    global _problem  # the one thing that a worker process knows
    _problem = problem
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _evaluate(trials: Sequence[Params]) -> FloatArray:
    if _problem is None:
        raise FusionBenchError("workers: a process was started without its problem")
    return _problem.evaluate_params(trials)
