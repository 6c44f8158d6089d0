"""Each cached function computes a result once for each view, and forgets only where it must."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run


@pytest.fixture
def runs() -> AlignedRuns:
    return align(Qrels.from_dict({"q": {"a": 1}}), [Run.from_dict("x", {"q": {"a": 1.0}})])


def test_the_oldest_results_of_a_function_are_forgotten_beyond_its_limit(
    runs: AlignedRuns,
) -> None:
    calls: list[int] = []

    @cached_by_view(keep=2)
    def limited(runs: AlignedRuns, number: int) -> int:
        calls.append(number)
        return number + len(runs.queries)

    @cached_by_view()
    def unlimited(_: AlignedRuns, number: int) -> list[int]:
        return [number]

    kept = [unlimited(runs, number) for number in range(5)]
    assert [limited(runs, number) for number in (1, 2, 1, 3, 1)] == [2, 3, 2, 4, 2]
    assert calls == [1, 2, 3, 1]  # 3 pushed out 1, the oldest
    assert all(unlimited(runs, number) is kept[number] for number in range(5))


def test_a_key_may_leave_arguments_out(runs: AlignedRuns) -> None:
    @cached_by_view(key=lambda values: len(values))
    def first(_: AlignedRuns, values: list[int]) -> int:
        return values[0]

    assert first(runs, [1, 2]) == first(runs, [3, 4]) == 1
    assert first(runs, [5]) == 5


def test_other_runs_have_a_cache_of_their_own(runs: AlignedRuns) -> None:
    @cached_by_view()
    def fresh(_: AlignedRuns) -> object:
        return object()

    assert fresh(runs) is fresh(runs)
    assert fresh(replace(runs)) is not fresh(runs)
    copy = pickle.loads(pickle.dumps(runs.cache))  # noqa: S301 - our own
    assert copy.lookup(fresh, (), int) == 0
