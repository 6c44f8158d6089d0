"""Aligned runs, and their views."""

import gc
import pickle
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import AlignedRuns, cached_by_view
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Query
from fusion_bench.data.run import Run
from fusion_bench.errors import AlignmentError, UnknownNameError

Lists = Mapping[str, Mapping[str, float]]

DOCUMENTS = ("d1", "d10", "d9", "é", "z", "Z")
LISTS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "unjudged"]),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3).map(float), min_size=1),
)
QRELS = {"q1": {"d1": 2, "z": 0, "never": 1}, "q2": {"Z": 3, "d9": 1}, "q3": {"d1": -1}}


def candidate_table(runs: AlignedRuns) -> dict[str, list[tuple[object, ...]]]:
    """Query → in storage order: document, ranks, scores, judged, grade, rerank."""
    return {
        query: [
            (
                runs.vocabulary[runs.documents[n]],
                tuple(runs.ranks[:, n].tolist()),
                tuple(None if np.isnan(x) else x for x in runs.scores[:, n].tolist()),
                bool(runs.judged[n]),
                int(runs.grades[n]),
                tuple(None if np.isnan(x) else x for x in runs.rerank[:, n].tolist()),
                tuple(runs.rerank_ranks[:, n].tolist()),
            )
            for n in range(runs.offsets[q], runs.offsets[q + 1])
        ]
        for q, query in enumerate(runs.queries)
    }


def ranks_of(scores: Mapping[str, float], depth: int | None = None) -> dict[str, int]:
    by_id = sorted(scores, key=str.encode, reverse=True)
    order = sorted(by_id, key=lambda d: -scores[d])
    return {d: r for r, d in enumerate(order, start=1) if depth is None or r <= depth}


def expected(
    runs: Sequence[Lists], rerank: Lists, ties: str, depths: Sequence[int | None]
) -> dict[str, list[tuple[object, ...]]]:
    out: dict[str, list[tuple[object, ...]]] = {}
    for query, grades in QRELS.items():
        ranks = [
            ranks_of(lists.get(query, {}), depth) for lists, depth in zip(runs, depths, strict=True)
        ]
        found = {d for one in ranks for d in one}
        documents = sorted(found, key=str.encode, reverse=True)
        if ties == "first_seen":
            seen = [d for one in ranks for d in sorted(one, key=lambda d: one[d])]
            documents = list(dict.fromkeys(seen))
        rerank_ranks = ranks_of(rerank.get(query, {}))
        out[query] = [
            (
                d,
                tuple(one.get(d, 0) for one in ranks),
                tuple(
                    lists[query][d] if d in one else None
                    for lists, one in zip(runs, ranks, strict=True)
                ),
                d in grades,
                grades.get(d, 0),
                (rerank.get(query, {}).get(d),),
                (rerank_ranks.get(d, 0),),
            )
            for d in documents
        ]
    return out


def aligned(runs: Sequence[Lists], rerank: Lists, ties: str = "trec") -> AlignedRuns:
    made = [Run.from_dict(f"s{n}", lists) for n, lists in enumerate(runs)]
    return align(
        Qrels.from_dict(QRELS),
        made,
        rerankers=[Run.from_dict("r", rerank)],
        ties="trec" if ties == "trec" else "first_seen",
    )


@given(
    st.lists(LISTS.map(lambda lists: {"q2": {"z": 1.0}} | lists), min_size=1, max_size=3),
    LISTS.map(lambda lists: {"q1": {"z": 1.0, "elsewhere": 2.0}} | lists),
    st.sampled_from(["trec", "first_seen"]),
    st.data(),
)
def test_alignment_and_its_views_are_those_of_dicts(
    runs: list[Lists], rerank: Lists, ties: str, data: st.DataObject
) -> None:
    whole = aligned(runs, rerank, ties)
    assert candidate_table(whole) == expected(runs, rerank, ties, [None] * len(runs))
    chosen = data.draw(st.permutations(range(len(runs))))[: data.draw(st.integers(1, 3))]
    depths = data.draw(
        st.lists(
            st.one_of(st.none(), st.integers(1, 4)), min_size=len(chosen), max_size=len(chosen)
        )
    )
    cuts = {f"s{n}": depth for n, depth in zip(chosen, depths, strict=True)}
    view = whole.restrict([f"s{n}" for n in chosen], cuts)
    wanted = expected([runs[n] for n in chosen], rerank, ties, depths)
    assert candidate_table(view) == wanted
    assert view.lengths.tolist() == [
        [sum(row[1][s] > 0 for row in wanted[q]) for q in QRELS]  # type: ignore[index]
        for s in range(len(chosen))
    ]
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=3, max_size=3).filter(any)))
    part = view.subset(keep)
    names = [query for query, kept in zip(QRELS, keep, strict=True) if kept]
    assert candidate_table(part) == {query: wanted[query] for query in names}
    assert ideal(part) == {
        q: sorted((g for g in QRELS[q].values() if g > 0), reverse=True) for q in names
    }


def ideal(runs: AlignedRuns) -> dict[str, list[int]]:
    return {
        query: runs.ideal_grades[runs.ideal_offsets[q] : runs.ideal_offsets[q + 1]].tolist()
        for q, query in enumerate(runs.queries)
    }


def test_judged_queries_stay_with_what_is_known_of_them() -> None:
    runs = aligned([{"q2": {"z": 1.0}, "unjudged": {"d1": 1.0}}], {"q2": {"z": 1.0}})
    assert runs.queries == ("q1", "q2", "q3")
    assert np.diff(runs.offsets).tolist() == [0, 1, 0]
    assert ideal(runs) == {"q1": [2, 1], "q2": [3, 1], "q3": []}
    run = Run.from_dict("a", {"q1": {"z": 1.0}}, roles=frozenset({"keyword"}))
    known = {"q1": Query("q1", type="local", confidence=0.8, group="g"), "other": Query("other")}
    runs = align(Qrels.from_dict(QRELS), [run], queries=known)
    assert runs.types == ("local", None, None)
    assert runs.confidences == (0.8, None, None)
    assert runs.groups == ("g", "q2", "q3")
    assert runs.roles == (frozenset({"keyword"}),)
    part = runs.subset(np.array([False, True, True]))
    assert (part.types, part.groups) == ((None, None), ("q2", "q3"))


def test_views_are_made_once_and_everything_is_read_only() -> None:
    runs = aligned([{"q1": {"z": 1.0, "d1": 2.0}}], {"q1": {"z": 1.0}})
    view = runs.restrict(["s0"], {"s0": 1})
    assert runs.restrict(["s0"], {"s0": 1}) is view
    assert runs.restrict(["s0"], {"s0": 2}) is not view
    for table in (runs, view, view.subset(np.array([True, False, False]))):
        arrays = [v for v in vars(table).values() if isinstance(v, np.ndarray)]
        for array in (*arrays, table.query_index, table.lengths):
            assert not array.flags.writeable


def test_a_view_of_nothing_but_empty_lists() -> None:
    kept = {"s0": 1}
    runs = aligned([{"q1": {"z": 1.0}}, {"q2": {"d1": 1.0}}], {"q1": {"z": 1.0}}, "first_seen")
    only = runs.restrict(["s1"], kept).subset(np.array([True, False, True]))
    assert len(only.documents) == 0
    assert only.offsets.tolist() == [0, 0, 0]
    assert only.lengths.tolist() == [[0, 0]]


# Errors -----------------------------------------------------------------------------------------


def test_sources_without_a_common_query_or_with_padding_only() -> None:
    qrels = Qrels.from_dict(QRELS)
    good, bad = Run.from_dict("a", {"q1": {"z": 1.0}}), Run.from_dict("b", {"1": {"z": 1.0}})
    with pytest.raises(
        AlignmentError,
        match=r"'b'.*'1'.*'q1'.*qrels\):",
    ):
        align(qrels, [good, bad])
    with pytest.raises(AlignmentError, match="list 'b'"):
        align(qrels, [good], rerankers=[bad])
    padding = Run.from_dict(
        "a", {"q1": {"z": 0.0}, "x": {"z": 1.0}}, read_options=ReadOptions(drop_zero_scores=True)
    )
    with pytest.raises(AlignmentError, match="no query"):
        align(Qrels.from_dict(QRELS), [padding])
    nothing = Run.from_dict(
        "a", {"q1": {"z": 0.0}}, read_options=ReadOptions(drop_zero_scores=True)
    )
    with pytest.raises(AlignmentError, match="row being dropped"):
        align(Qrels.from_dict(QRELS), [nothing])


def test_names_that_are_not_there_or_stand_twice() -> None:
    run = Run.from_dict("a", {"q1": {"z": 1.0}})
    with pytest.raises(AlignmentError, match=r"two runs .* 'a'"):
        align(Qrels.from_dict(QRELS), [run, run])
    with pytest.raises(AlignmentError, match=r"two rerank lists .* 'a'"):
        align(Qrels.from_dict(QRELS), [run], rerankers=[run, run])
    with pytest.raises(AlignmentError, match="no run"):
        align(Qrels.from_dict(QRELS), [])
    runs = aligned([{"q1": {"z": 1.0}}], {"q1": {"z": 1.0}})
    with pytest.raises(UnknownNameError, match=r"unknown run 's1' \(known: s0\)"):
        runs.restrict(["s1"])
    with pytest.raises(AlignmentError, match="no query"):
        runs.subset(np.zeros(3, dtype=bool))


def test_a_view_of_everything_is_the_runs_and_nothing_keeps_them() -> None:
    runs = align(Qrels.from_dict({"q": {"d": 1}}), [Run.from_dict("a", {"q": {"d": 1.0}})])
    assert runs.restrict(["a"]) is runs
    gone = weakref.ref(runs)
    gc.disable()
    try:
        del runs
        assert gone() is None
    finally:
        gc.enable()


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
