"""The loop in C counts as the obvious one does, and touches nothing outside its buffers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fusion_bench.ranking import batch_engine
from fusion_bench.ranking.batch_engine import count_in_numpy
from fusion_bench.ranking.term_sums import MemberPairs, RoughTerms

compiled = pytest.importorskip("fusion_bench.ranking._native", reason="it was not compiled here")


def random_work(seed: int, lanes: int, tables: int) -> tuple[RoughTerms, MemberPairs]:
    """Few distinct numbers, so that many scores stand on a bound or between two."""
    rng = np.random.default_rng(seed)
    members, depth = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 9, members))])
    pairs = int(starts[-1])
    lower = rng.integers(0, 4 * tables, (members, lanes)).astype(np.float32)
    sums = RoughTerms(
        tuple(rng.integers(0, 5, (depth, lanes)).astype(np.float32) for _ in range(tables)),
        tuple(rng.integers(0, depth, pairs).astype(np.int32) for _ in range(tables)),
        lower,
        lower + rng.integers(0, 3, (members, lanes)).astype(np.float32),
    )
    others = np.arange(pairs)
    return sums, MemberPairs(np.arange(members), starts, others)


def obvious(sums: RoughTerms, pairs: MemberPairs) -> tuple[NDArray[np.int64], set[tuple[int, int]]]:
    """(n, L) counts and the doubtful (pair, lane), one by one."""
    above, doubts = np.zeros(sums.lower.shape, dtype=np.int64), set()
    for member, lane in np.ndindex(*above.shape):
        for pair in range(pairs.starts[member], pairs.starts[member + 1]):
            score = sum(
                float(table[codes[pair], lane])
                for table, codes in zip(sums.tables, sums.codes, strict=True)
            )
            if score > sums.upper[member, lane]:
                above[member, lane] += 1
            elif score >= sums.lower[member, lane]:
                doubts.add((pair, lane))
    return above, doubts


@given(st.integers(0, 2**32), st.integers(1, batch_engine.LANES), st.integers(1, 5), st.booleans())
def test_it_counts_as_the_obvious_loop(seed: int, lanes: int, tables: int, cramped: bool) -> None:
    sums, pairs = random_work(seed, lanes, tables)
    capacity = 1 if cramped else batch_engine.DOUBT_CAPACITY
    expected, doubts = obvious(sums, pairs)
    for above, lane, pair in (
        batch_engine.count_pairs(sums, pairs, doubt_capacity=capacity),
        count_in_numpy(sums, pairs, 5 if cramped else 4_000),
    ):
        np.testing.assert_array_equal(above, expected)
        assert sorted(zip(pair.tolist(), lane.tolist(), strict=True)) == sorted(doubts)


def arguments(**changed: Any) -> list[Any]:  # noqa: ANN401 - of any wrong type
    """Two members with a pair each, one table of three rows, one lane."""
    given = {
        "tables": (np.zeros(3, dtype=np.float32),),
        "codes": (np.array([0, 2], dtype=np.int32),),
        "starts": np.array([0, 1, 2]),
        "lower": np.zeros(2, dtype=np.float32),
        "upper": np.zeros(2, dtype=np.float32),
        "above": np.zeros(2, dtype=np.int64),
        "pairs": np.zeros(4, dtype=np.int64),
        "between": np.zeros(4, dtype=np.uint8),
        "lanes": 1,
    }
    return list((given | changed).values())


READ_ONLY = np.zeros(2, dtype=np.int64)
READ_ONLY.setflags(write=False)
WRONG: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"codes": (np.array([0, 3], dtype=np.int32),)}, IndexError),
    ({"codes": (np.array([0, -1], dtype=np.int32),)}, IndexError),
    ({"codes": (np.array([0], dtype=np.int32),)}, ValueError),
    ({"codes": (np.array([0, 2]),)}, TypeError),
    ({"codes": ()}, ValueError),
    ({"tables": (), "codes": ()}, ValueError),
    ({"tables": (np.zeros(3),)}, TypeError),
    ({"tables": [np.zeros(3, dtype=np.float32)]}, TypeError),
    ({"starts": np.array([0, 2, 1, 2])}, ValueError),
    ({"starts": np.array([1, 1, 2])}, IndexError),
    ({"starts": np.array([0, 3, 2])}, IndexError),
    ({"starts": np.array([0, 1, -2])}, ValueError),
    ({"upper": np.zeros(1, dtype=np.float32)}, ValueError),
    ({"upper": None}, TypeError),
    ({"above": np.zeros(1, dtype=np.int64)}, ValueError),
    ({"above": READ_ONLY}, ValueError),
    ({"between": np.zeros(3, dtype=np.uint8)}, ValueError),
    ({"lanes": 0}, ValueError),
    ({"lanes": 2}, ValueError),
    ({"lanes": 8}, ValueError),
]


@pytest.mark.parametrize(("changed", "error"), WRONG)
def test_a_buffer_that_does_not_fit_is_refused(
    changed: dict[str, Any], error: type[Exception]
) -> None:
    assert compiled.count(*arguments()) == 2
    with pytest.raises(error):
        compiled.count(*arguments(**changed))


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSION_BENCH_NATIVE", "1")
    assert batch_engine.is_usable()
    monkeypatch.setenv("FUSION_BENCH_NATIVE", "0")
    assert not batch_engine.is_usable()
