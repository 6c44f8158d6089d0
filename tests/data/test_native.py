"""The loops over tables in C find what numpy finds, and touch nothing outside their buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data import grouped_rows as columns
from fusion_bench.data import native
from fusion_bench.data import ordering as order
from fusion_bench.data.aligned_runs import AlignedRuns, align
from fusion_bench.data.packed_ids import pack
from fusion_bench.data.records import Qrels, Run

compiled = pytest.importorskip("fusion_bench.data._native", reason="it was not compiled here")

QUICK = settings(max_examples=100, deadline=None)
SCORES = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e300, 1e300),
    st.sampled_from([1.0, 1 + 1e-12, 1 + 1e-11, 1 + 3e-11, 1e308, -1e308, 0.0, -0.0, 5e-324]),
)
QUERIES = st.lists(st.lists(st.tuples(SCORES, st.integers(0, 9)), max_size=6), min_size=1)


@QUICK
@given(QUERIES, st.booleans())
def test_what_is_in_order_is_what_numpy_says(
    queries: list[list[tuple[float, int]]], by_document: bool
) -> None:
    offsets = np.cumsum([0, *map(len, queries)])
    scores = np.array([score for rows in queries for score, _ in rows], dtype=np.float64)
    documents = np.array([document for rows in queries for _, document in rows], dtype=np.int64)
    found = native.settled(scores, documents, offsets, by_document=by_document)
    expected = order.settled(scores, offsets, tie_order=~documents if by_document else None)
    if found is not None:
        np.testing.assert_array_equal(found, expected)
    else:  # only where two scores are that near and not the same
        with np.errstate(over="ignore"):  # ±1e308 are drawn, and further apart than a float holds
            gaps = np.abs(np.diff(scores))
        assert (gaps[gaps > 0] <= 1e-10 * np.abs(scores).max()).any()


@QUICK
@given(QUERIES)
def test_a_document_named_twice_is_found(queries: list[list[tuple[float, int]]]) -> None:
    offsets = np.cumsum([0, *map(len, queries)])
    named = [[document for _, document in rows] for rows in queries]
    documents = np.array([document for rows in named for document in rows], dtype=np.int64)
    expected = any(len(set(rows)) < len(rows) for rows in named)
    assert native.any_twice(documents, offsets, 10) is expected


@QUICK
@given(st.lists(st.integers(0, 5)))
def test_rows_are_counted(lengths: list[int]) -> None:
    offsets = columns.to_offsets(np.array(lengths, dtype=np.int64))
    expected = [n for length in lengths for n in range(1, length + 1)]
    assert native.counting(offsets).tolist() == expected


def random_tables(seed: int, depth: int) -> tuple[Qrels, list[Run]]:
    """Runs in different orders of queries, some of which are not judged."""
    rng = np.random.default_rng(seed)
    names = [f"d{n}" for n in range(2 * depth)]
    judged = {f"q{q}": {str(rng.choice(names)): 1} for q in range(6)}
    runs = []
    for s in range(int(rng.integers(1, 4))):
        ranked = {}
        for q in ["q0", *(f"q{q}" for q in rng.permutation(np.arange(1, 9))[:6])]:
            found = rng.permutation(names)[: int(rng.integers(1, depth + 1))].tolist()
            ranked[q] = {
                d: float(x) for d, x in zip(found, rng.integers(0, 9, depth), strict=False)
            }
        runs.append(Run.from_dict(f"run{s}", ranked))
    return Qrels.from_dict(judged), runs


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([2, 9, 60, 400]), st.booleans())
def test_the_candidates_are_those_of_numpy(seed: int, depth: int, reranked: bool) -> None:
    qrels, runs = random_tables(seed, depth)
    made: list[AlignedRuns] = []
    for switch in "10":
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FUSION_BENCH_NATIVE", switch)
            made.append(align(qrels, runs, rerankers=runs[:1] if reranked else []))
    for name, value in vars(made[0]).items():
        other = vars(made[1])[name]
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, name
            assert value.tobytes() == other.tobytes(), name
        elif not name.startswith("_"):
            assert value == other, name


def test_ids_that_cannot_be_packed_are_aligned_all_the_same() -> None:
    name = "d" * 70
    assert pack([name]) is None
    made = align(Qrels.from_dict({"q": {name: 2}}), [Run.from_dict("a", {"q": {name: 1.0}})])
    assert made.grades.tolist() == [2]


def test_more_than_can_be_counted_is_left_to_numpy() -> None:
    rows = np.zeros(1, dtype=np.int64)
    source = native.Listed(rows, rows, rows, rows + 1)
    assert native.candidates([source], 1) is not None
    assert native.candidates([source], 40) is None


ONE, TWO = np.zeros(1, dtype=np.int64), np.array([0, 1])
I32, U8, F8 = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.uint8), np.zeros(1)


def source(**changed: Any) -> tuple[tuple[Any, ...]]:  # noqa: ANN401 - of any wrong type
    given = {"documents": ONE, "codes": ONE, "begins": ONE, "counts": ONE + 1, "places": I32.copy()}
    return (tuple((given | changed).values()),)


SOUND: dict[str, tuple[Any, ...]] = {
    "settled": (F8, ONE, TWO, U8.copy(), 1e-11, True),
    "twice": (ONE, TWO, 1),
    "counted": (TWO, ONE.copy()),
    "joined": (source(), 1, ONE.copy(), TWO.copy()),
}
WRONG: list[tuple[str, int, Any, type[Exception]]] = [
    ("settled", 0, ONE, TypeError),
    ("settled", 1, TWO, ValueError),
    ("settled", 2, np.array([0, 2]), IndexError),
    ("settled", 2, np.array([1, 1]), IndexError),
    ("settled", 3, np.zeros(2, np.uint8), ValueError),
    ("twice", 0, ONE + 1, IndexError),
    ("twice", 0, ONE - 1, IndexError),
    ("twice", 0, F8, TypeError),
    ("twice", 1, np.array([0, 2, 1]), IndexError),
    ("twice", 1, np.zeros(0, np.int64), ValueError),
    ("twice", 2, -1, ValueError),
    ("counted", 0, np.zeros(0, np.int64), IndexError),
    ("counted", 0, np.array([0, 2]), IndexError),
    ("counted", 1, F8, TypeError),
    ("joined", 0, (None,), TypeError),
    ("joined", 0, source(documents=ONE + 1), IndexError),
    ("joined", 0, source(codes=ONE + 2), IndexError),
    ("joined", 0, source(codes=ONE - 1), IndexError),
    ("joined", 0, source(begins=ONE + 1), IndexError),
    ("joined", 0, source(begins=ONE - 1), IndexError),
    ("joined", 0, source(counts=ONE - 1), IndexError),
    ("joined", 0, source(counts=TWO), ValueError),
    ("joined", 0, source(places=ONE.copy()), TypeError),
    ("joined", 0, source(places=np.zeros(2, np.int32)), ValueError),
    ("joined", 1, 0, ValueError),
    ("joined", 1, 32, ValueError),
    ("joined", 2, np.zeros(0, np.int64), ValueError),
    ("joined", 3, F8, TypeError),
    ("joined", 3, np.zeros(0, np.int64), ValueError),
]


@pytest.mark.parametrize(("name", "at", "value", "error"), WRONG)
def test_a_buffer_that_does_not_fit_is_refused(
    name: str, at: int, value: object, error: type[Exception]
) -> None:
    given, function = list(SOUND[name]), getattr(compiled, name)
    function(*given)
    given[at] = value
    with pytest.raises(error):
        function(*given)
