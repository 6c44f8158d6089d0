"""Queries, switches, judgments."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.records import Condition, Document, Query, Switch, format_condition
from fusion_bench.data.run import Run
from fusion_bench.errors import DataError


def test_records_are_frozen() -> None:
    ranked = Run.from_dict({"q": {"a": 1.0}})
    qrels = Qrels.from_dict({"q": {"a": 1}})
    for array in (
        *(ranked.offsets, ranked.documents, ranked.scores, ranked.ranks),
        *(qrels.offsets, qrels.documents, qrels.grades),
    ):
        assert not array.flags.writeable
    for record, field in ((ranked, "name"), (qrels, "queries"), (Query("q"), "text")):
        with pytest.raises(FrozenInstanceError):
            setattr(record, field, "x")
    assert Document("d", "text").text == "text"


def test_what_is_handed_in_stays_writable_and_unchanged() -> None:
    scores, ranks = np.array([1.0, 2.0]), np.array([0, 1])
    grades = np.array([1, 2])
    Run.from_rows(
        "a",
        ["q", "q"],
        ["x", "y"],
        scores,
        ranks=ranks,
        read_options=ReadOptions(rank_from="column"),
    )
    Qrels.from_rows(["q", "q"], ["x", "y"], grades)
    assert (scores.tolist(), ranks.tolist(), grades.tolist()) == ([1.0, 2.0], [0, 1], [1, 2])
    assert all(array.flags.writeable for array in (scores, ranks, grades))


META: Condition = {"intent": ("meta",)}
LISTS = {"q1": {"a": 3.0, "b": 0.0}, "q2": {"b": 2.0}, "q3": {"c": 1.0, "a": 0.5}}
QUERIES = [Query("q1", intent="meta"), Query("q2", intent="rules"), Query("q3")]


@pytest.mark.parametrize(
    ("condition", "query", "is_on"),
    [
        ({"intent": ("meta",)}, Query("q", intent="meta"), True),
        ({"intent": ("meta", "rules")}, Query("q", intent="rules"), True),
        ({"intent": ("meta",)}, Query("q", intent="Meta"), False),
        ({"intent": ("meta",)}, Query("q"), False),
        ({"language": ("ja",)}, Query("q", fields={"language": "ja"}), True),
        ({"language": ("ja",), "intent": ("meta",)}, Query("q", fields={"language": "ja"}), False),
        ({"split": ("dev",)}, Query("q", split="dev"), True),
        ({"confidence": ("0.5",)}, Query("q", confidence=0.5), True),
        ({"type": ("local",)}, Query("q", type="local"), True),
        ({"type": ("local",)}, Query("q", type="local", confidence=0.69), False),
        ({"type": ("hybrid",)}, Query("q", type="local", confidence=0.69), True),
        ({"type": ("hybrid",)}, Query("q"), True),
    ],
)
def test_a_condition_looks_at_every_field(condition: Condition, query: Query, is_on: bool) -> None:
    assert (Switch.for_queries(condition, [query]).queries == {"q"}) is is_on


def test_why_a_source_is_off() -> None:
    switch = Switch(frozenset(), {"intent": ("meta",), "language": ("en", "fr")})
    assert switch.explain_off(Query("q", intent="rules")) == (
        "intent is rules and language is not known"
    )
    assert Switch(frozenset()).explain_off(Query("q")) == "all of its sources are off"
    assert format_condition(switch.condition) == "intent: meta; language: en, fr"


def test_switched_runs_are_empty_and_dropped_padding_stays_counted() -> None:
    run = Run.from_dict("meta", LISTS).switched(Switch.for_queries(META, QUERIES))
    assert run.to_dict() == {"q1": {"a": 3.0, "b": 0.0}, "q2": {}, "q3": {}}
    assert (run.queries, run.zero_scores) == (("q1", "q2", "q3"), 1)
    run = Run.from_dict("meta", LISTS, read_options=ReadOptions(drop_zero_scores=True))
    assert run.switched(Switch(frozenset())).zero_scores == 1


def test_a_digest_covers_the_queries_for_which_a_run_is_on() -> None:
    run = Run.from_dict("meta", LISTS)
    digests = {
        on: run.switched(Switch(frozenset(on), META)).digest()
        for on in ((), ("q1",), ("q1", "q2"), ("q1", "q2", "q3"))
    }
    assert len({run.digest(), *digests.values()}) == 5
    assert run.switched(Switch(frozenset(["q1"]))).digest() == digests["q1",]


def test_aligned_runs_say_what_is_off() -> None:
    qrels = Qrels.from_dict({query: {"a": 1} for query in LISTS})
    switch = Switch.for_queries(META, QUERIES)
    runs = align(
        qrels,
        [Run.from_dict("all", LISTS), Run.from_dict("meta", LISTS).switched(switch)],
        queries={query.id: query for query in QUERIES},
    )
    off = [[False, False, False], [False, True, True]]
    assert runs.off.tolist() == off
    assert runs.lengths.tolist() == [[2, 1, 2], [2, 0, 0]]
    assert runs.values_of("intent") == ("meta", "rules", None)
    assert runs.subset(np.array([False, True, True])).off.tolist() == [r[1:] for r in off]
    assert runs.between(0, 2).off.tolist() == [r[:2] for r in off]
    assert runs.restrict(["meta"]).off.tolist() == off[1:]
    empty, scores = np.zeros(5, dtype=np.int64), np.full(5, np.nan)
    added = runs.add_source("stage", frozenset(), empty, scores, Switch(frozenset(["q2"])))
    assert added.off.tolist() == [*off, [True, False, True]]


def test_qrels_keep_grades_by_query() -> None:
    judged = {"q2": {"b": 2, "a": 0}, "q1": {"a": -1}}
    qrels = Qrels.from_dict(judged)
    assert qrels.to_dict() == judged
    assert qrels.queries == ("q1", "q2")  # whatever the order of the file
    assert qrels.digest() == Qrels.from_dict(dict(reversed(judged.items()))).digest()
    assert qrels.digest() == Qrels.from_dict({"q2": {"a": 0, "b": 2}, "q1": {"a": -1}}).digest()
    assert qrels.digest() != Qrels.from_dict({"q2": {"a": 1, "b": 2}, "q1": {"a": -1}}).digest()


def test_qrels_refuse_nothing_ragged_columns_and_pairs_judged_twice() -> None:
    with pytest.raises(DataError, match="grades 1, 0 for query 'q'") as caught:
        Qrels.from_rows(["q", "r", "q"], ["a", "a", "a"], [1, 1, 0])
    assert caught.value.row == 2
    with pytest.raises(DataError, match="no judgement"):
        Qrels.from_dict({})
    with pytest.raises(DataError, match="1 queries, 1 documents, 2 grades"):
        Qrels.from_rows(["q"], ["a"], [1, 2])
