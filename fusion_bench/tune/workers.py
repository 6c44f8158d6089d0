"""Several processes on one machine: one sampler asks, all of them evaluate.

A batch is dealt out trial by trial, so what is found does not depend on the number of processes,
and a process that dies costs only its share of one batch, which is evaluated again.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fusion_bench.errors import FusionBenchError
from fusion_bench.order import FloatArray
from fusion_bench.space import Params
from fusion_bench.tune.problem import Problem

__all__ = ["Evaluate", "evaluators"]

#: Values per query, shape (T, Q), of T trials.
Evaluate: TypeAlias = Callable[[Sequence[Params]], FloatArray]
#: How often dead processes are replaced before the fault must lie elsewhere.
RETRIES = 2

_problem: Problem | None = None


@contextmanager
def evaluators(problem: Problem, workers: int) -> Iterator[Evaluate]:
    """Evaluate the problem's trials in this process, or in several others.

    Args:
        problem: On the queries that are tuned on.
        workers: How many processes; 1 = this one alone.
    """
    if workers == 1:
        yield problem.values
        return
    pool = _Pool(problem, workers)
    try:
        yield pool.values
    finally:
        pool.close()


class _Pool:
    """Processes that hold the problem and are sent parameters."""

    def __init__(self, problem: Problem, workers: int) -> None:
        # What was derived from the arrays is made again where it is needed.
        self._problem = replace(problem, runs=replace(problem.runs, _memo={}))
        self._workers = workers
        self._executor = self._started()

    def values(self, trials: Sequence[Params]) -> FloatArray:
        """(T, Q): the same to the last bit as the problem's own.

        Raises:
            FusionBenchError: Processes die again and again.
        """
        for _ in range(RETRIES):
            try:
                return self._values(trials)
            except BrokenProcessPool:
                self.close()
                self._executor = self._started()
        raise FusionBenchError(
            f"workers: the processes were killed {RETRIES} times in a row, often for want of "
            "memory: ask for fewer --workers"
        )

    def close(self) -> None:
        """End the processes."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _values(self, trials: Sequence[Params]) -> FloatArray:
        shares = [trials[i :: self._workers] for i in range(self._workers)]
        futures = [self._executor.submit(_evaluate, share) for share in shares if share]
        found = np.empty((len(trials), len(self._problem.runs.queries)))
        for i, future in enumerate(futures):
            found[i :: self._workers] = future.result()
        return found

    def _started(self) -> ProcessPoolExecutor:
        # Forking a process that has threads (a sampler's, a progress bar's) can lock up the child.
        server = "forkserver" in multiprocessing.get_all_start_methods()
        return ProcessPoolExecutor(
            self._workers,
            mp_context=multiprocessing.get_context("forkserver" if server else "spawn"),
            initializer=_start,
            initargs=(self._problem,),
        )


def _start(problem: Problem) -> None:
    """Remember the problem; leave Ctrl-C to the process that asks."""
    import signal

    global _problem  # the one thing that a worker process knows
    _problem = problem
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _evaluate(trials: Sequence[Params]) -> FloatArray:
    if _problem is None:
        raise FusionBenchError("workers: a process was started without its problem")
    return _problem.values(trials)
