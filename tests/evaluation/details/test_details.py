"""What stands behind the values of a report: ranks, terms and texts of single documents."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.checks.unjudged import find_system_bounds, measure_unjudged
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import UnknownKeyError, UnknownNameError
from fusion_bench.evaluation.assessment import assess_system
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.details.relevant_ranks import (
    TOP,
    RankCollector,
    SourceOverlap,
    list_relevant,
    make_relevant_ranks,
    measure_overlap,
)
from fusion_bench.evaluation.details.report_details import (
    CollectionDetails,
    LeftOut,
    ReportDetails,
    choose_queries,
    estimate_sizes,
    leave_sources_out,
    measure_depths,
)
from fusion_bench.evaluation.details.top_documents import list_top_documents
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.measures import parse_measure
from fusion_bench.ranking import system_scores
from fusion_bench.ranking.plain_systems import fit_system
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.intervals import estimate_mean
from tests import tiny
from tests.evaluation.details.cases import (
    MEASURE,
    QUERIES,
    SOURCES,
    SYSTEMS,
    Case,
    detail,
    final_lists,
    make_case,
    make_system,
)
from tests.examples import examples
from tests.tiny import DATASET, EXPERIMENT, edit


def details(root: Path, collector: DetailsCollector | None = None) -> ReportDetails:
    experiment, source = read_experiment(root / EXPERIMENT)
    collector = collector or DetailsCollector()
    report = run_experiment(experiment, source, folders=[root / "datasets"], details=collector)
    return collector.make_details(report)


def collection(root: Path) -> CollectionDetails:
    return details(root).collection("tiny")


def test_the_facts_of_a_run(tmp_path: Path) -> None:
    found = collection(tiny.make(tmp_path))
    assert found.queries == ("q1", "q2", "q4")
    frame = found.relevant.to_pandas()
    assert frame["document"].tolist() == ["d1", "d3", "d4"]
    assert frame[["a", "b", "one"]].values.tolist() == [[2, 1, 1], [2, 2, 1], [2, 1, 1]]
    assert found.unjudged["one"].tolist() == [0, 2, 1]
    assert found.overlap.alone.tolist() == [0, 0]
    assert found.top_documents("one").to_pandas()["term a"].tolist()[0] == 1 / 62
    assert found.texts == (None, None, None)
    assert found.document_texts == {}


def test_baseline_best_guarded_tuned_and_named_systems_are_detailed(root: Path) -> None:
    more = "  three: {runs: [a]}\n  four: {runs: [b]}\n  five: {runs: [b, a], depth: 1}\n"
    settings = "gate: {system: two, checks: {nDCG@10: {max_drop: 0.1}}}\ntune: {system: four}\n"
    path = root / EXPERIMENT
    path.write_text(path.read_text(encoding="utf-8") + more + settings, encoding="utf-8")
    found = details(root, DetailsCollector(("three", "one"))).collections[0]
    assert found.detailed == ("one", "two", "four", "three")
    assert tuple(top.system for top in found.top) == found.detailed
    assert set(found.relevant.systems) == {"one", "two", "three", "four", "five"}
    with pytest.raises(UnknownKeyError, match="five"):
        found.top_documents("five")


def test_an_unknown_name_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    root = tiny.make(tmp_path, a="not a run")
    with pytest.raises(UnknownNameError, match=r"'tow'.*two"):
        details(root, DetailsCollector(("tow",)))


def test_texts_are_shortened(root: Path) -> None:
    edit(root, DATASET, "queries: ", "documents: docs.jsonl\nqueries: ")
    edit(root, "datasets/tiny/queries.jsonl", '"q1", ', '"q1", "text": "why\\n me?", ')
    lines = [{"id": "d1", "title": "One", "text": "x" * 400}, {"id": "d77", "text": "unused"}]
    text = "\n".join(map(json.dumps, lines))
    (root / "datasets/tiny/docs.jsonl").write_text(text, encoding="utf-8")
    found = collection(root)
    assert found.texts == ("why me?", None, None)
    assert found.document_texts == {"d1": f"One: {'x' * 295}…"}


def test_where_all_is_too_much_the_page_can_say_so(root: Path) -> None:
    [found] = details(root, DetailsCollector(limit=1)).collections
    assert found.kept_queries.tolist() == []
    assert (found.relevant.documents, found.top[0].documents) == ((), ())
    assert found.overlap.relevant == 3
    assert "0 of 3 queries" in repr(found)
    assert details(root).to_pandas()["with details"].tolist() == [3]


def test_two_collections_share_the_limit(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    tiny.make(tmp_path / "other")
    (tmp_path / "other/datasets/tiny").rename(root / "datasets/second")
    edit(root, "datasets/second/dataset.yaml", "name: tiny", "name: second")
    edit(root, EXPERIMENT, "dataset: tiny", "datasets: [tiny, second]")
    found = details(root)
    assert [each.name for each in found.collections] == ["tiny", "second"]
    assert found.collection("second").queries == ("q1", "q2", "q4")
    with pytest.raises(UnknownKeyError, match="third"):
        found.collection("third")


# ── ranks and tops, collected while systems are measured, against the final lists one by one


CASES = st.builds(make_case, st.integers(0, 10**6))


def collect(case: Case, config: dict[str, Any]) -> tuple[AlignedRuns, RankCollector]:
    runs = case.align()
    collector = RankCollector(runs, list_relevant(runs, case.qrels, 1))
    observe = collector.observe("s")
    assess_system(make_system(config), runs, [MEASURE], observe)
    return runs, collector


@pytest.mark.parametrize("config", SYSTEMS, ids=str)
@settings(max_examples=examples(12))
@given(case=CASES)
def test_ranks_of_relevant_documents(case: Case, config: dict[str, Any]) -> None:
    runs, collected = collect(case, config)
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    expected = []
    lists = final_lists(make_system(config), runs)
    for query in runs.queries:
        for document, grade in case.judged[query].items():
            if grade > 0:
                found = [*lists[query], document]
                rank = found.index(document) + 1
                expected.append((query, document, grade, rank if rank < len(found) else 0))
    rows = zip(
        (ranks.queries[q] for q in ranks.query),
        ranks.documents,
        ranks.grades.tolist(),
        ranks.system_ranks[0].tolist(),
        strict=True,
    )
    assert sorted(rows) == sorted(expected)


@settings(max_examples=examples(25))
@given(case=CASES)
def test_ranks_in_the_sources(case: Case) -> None:
    runs = case.align()
    ranks = make_relevant_ranks(runs, list_relevant(runs, case.qrels, 1), {})
    assert ranks.system_ranks.shape == (0, len(ranks.documents))
    for name, row in zip(ranks.sources, ranks.source_ranks.tolist(), strict=True):
        alone = final_lists(make_system({"runs": [name]}), runs)
        for q, document, rank in zip(ranks.query.tolist(), ranks.documents, row, strict=True):
            found = [*alone[runs.queries[q]], document]
            assert rank == (found.index(document) + 1) % len(found)


@pytest.mark.parametrize("config", SYSTEMS, ids=str)
@settings(max_examples=examples(12))
@given(case=CASES)
def test_top_documents_are_the_beginnings_of_the_lists(case: Case, config: dict[str, Any]) -> None:
    runs, collected = collect(case, config)
    top = list_top_documents(make_system(config), runs, collected.tops["s"])
    lists = final_lists(make_system(config), runs)
    expected = [
        (query, rank, document, case.judged[query].get(document))
        for query in runs.queries
        for rank, document in enumerate(lists[query][:TOP], start=1)
    ]
    columns = top._table_columns()
    assert (
        list(zip(*(columns[name] for name in ("query", "rank", "document", "grade")), strict=True))
        == expected
    )
    np.testing.assert_allclose(np.nansum(top.terms, axis=0), top.scores, rtol=1e-12, atol=1e-12)
    unjudged = [sum(grade is None for q, *_, grade in expected if q == query) for query in QUERIES]
    assert collected.unjudged["s"].tolist() == unjudged


def describe_all(config: dict[str, Any]) -> str:
    system, measures = make_system(config), [MEASURE, parse_measure("AP")]
    runs, collected = collect(make_case(5), config)
    assessed = assess_system(system, runs, measures)
    unjudged = [assessed.unjudged, *measure_unjudged(system, runs, measures[:1])]
    bounds = [*assessed.bounds, *find_system_bounds(system, runs, measures)]
    records = [assessed.ties, *unjudged, *filter(None, bounds)]
    top = list_top_documents(system, runs, collected.tops["s"])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    tables = [assessed.values, *map(vars, records), top.to_dict(), ranks.to_dict()]
    # A sum over a wider table may be rounded otherwise.
    return json.dumps([*tables, collected.unjudged], default=lambda a: np.round(a, 12).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("config", SYSTEMS, ids=str)
def test_a_large_collection_is_measured_block_by_block(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = describe_all(config)
    for name in ("DEFAULT_LIMITS", "UNCACHED"):
        monkeypatch.setattr(system_scores, name, system_scores.ShardLimits(candidates=1))
    blocks = [*system_scores.query_blocks(make_case(5).align(), [MEASURE])]
    assert [first for first, _ in blocks] == [0, 1, 4]
    assert describe_all(config) == whole


def test_a_part_of_the_queries_keeps_its_rows() -> None:
    runs, collected = collect(make_case(3), SYSTEMS[4])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    top = list_top_documents(make_system(SYSTEMS[4]), runs, collected.tops["s"])
    keep = np.array([True, False, False, True, False])
    for whole in (ranks, top):
        frame, part = whole.to_pandas(), whole.keep_queries(keep).to_pandas()
        chosen = frame[frame["query"].isin(["q0", "q3"])].reset_index(drop=True)
        assert 0 < len(part) < len(frame)
        assert part.equals(chosen)


# ── systems without a source, and on shorter lists: against the same lists made by hand


RRF = {"fusion": {"method": "rrf", "k": 3, "weights": {"b": 2.0}}}


def left_out(case: Case, config: dict[str, Any], source: str) -> LeftOut:
    found = leave_sources_out(detail(case, make_system(config)), case.align())
    [row] = [row for row in found.rows if row.source == source]
    return row


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("config", "without"),
    [
        (RRF, {"runs": ["b", "c"], **RRF}),
        (SYSTEMS[2], {**SYSTEMS[2], "runs": ["b", "c"]}),
        (SYSTEMS[3], {**SYSTEMS[3], "runs": ["b", "c"]}),
        (SYSTEMS[4], {**SYSTEMS[4], "runs": ["b", "c"]}),
        (SYSTEMS[5], {**SYSTEMS[5], "stages": {"inner": {"runs": ["b"], "top_k": 5}}}),
    ],
    ids=str,
)
def test_without_a_source(config: dict[str, Any], without: dict[str, Any], seed: int) -> None:
    case = make_case(seed)
    row = left_out(case, config, "a")
    whole, rest = (make_system(each) for each in (config, without))
    lists = {name: rows for name, rows in case.lists.items() if name != "a"}
    [now] = evaluate_systems([rest], case.align(lists), [MEASURE])
    [before] = evaluate_systems([whole], case.align(), [MEASURE])
    assert row.mean == pytest.approx(now.values.mean(), rel=1e-12)
    estimate = estimate_mean(now.values[0] - before.values[0])
    assert row.difference == pytest.approx(estimate.mean, abs=1e-12)
    assert row.reason == ""
    ends = (max(estimate.low, -1), min(estimate.high, 1))
    assert (row.low, row.high) == pytest.approx(ends, abs=1e-9)


def test_a_trained_fusion_sees_a_source_that_returned_nothing() -> None:
    case = make_case(2)
    config = {"fusion": {"method": "prob_fuse", "segments": 2}}
    fitted = fit_system(make_system(config), case.align())
    rest = np.array([False, True, True, True, True])  # a list must answer some query: not these
    runs = case.align({**case.lists, "a": {"q0": {"d00": 1.0}}}).subset(rest)
    [expected] = evaluate_systems([fitted], runs, [MEASURE])
    runs = case.align().subset(rest)
    row = leave_sources_out(detail(case, fitted, runs=runs), runs).rows[0]
    assert (row.source, row.reason) == ("a", "")
    assert row.mean == pytest.approx(expected.values[0].mean(), rel=1e-12)
    assert row.difference != 0


def test_a_system_that_needs_the_source_says_so() -> None:
    row = left_out(make_case(0), SYSTEMS[3], "b")
    assert math.isnan(row.mean)
    assert "role 'question'" in row.reason


def test_the_others_are_evaluated_all_the_same() -> None:
    case = make_case(0)
    first, second = make_system(SYSTEMS[3]), make_system(RRF).model_copy(update={"name": "t"})
    found = leave_sources_out(detail(case, first, second), case.align())
    assert [(row.system, row.source) for row in found.rows] == [
        (system, source) for system in "st" for source in "abc"
    ]
    assert [bool(row.reason) for row in found.rows] == [False, True, False, False, False, False]
    assert found.to_pandas()["difference"].isna().tolist() == [bool(r.reason) for r in found.rows]
    assert found.to_dict()["rows"][1]["mean"] is None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("config", [RRF, *SYSTEMS[2:]], ids=str)
def test_shorter_lists(config: dict[str, Any], seed: int) -> None:
    case = make_case(seed)
    found = measure_depths(detail(case, make_system(config)), case.align())
    longest = max(len(rows) for run in case.lists.values() for rows in run.values())
    assert [row.depth for row in found.rows] == [d for d in (5, 10) if d < longest] + [longest]
    for row in found.rows:
        cut = {
            name: {query: _first(rows, row.depth) for query, rows in lists.items()}
            for name, lists in case.lists.items()
        }
        [expected] = evaluate_systems([make_system(config)], case.align(cut), [MEASURE])
        assert row.mean == pytest.approx(np.mean(expected.values[0]), rel=1e-12)


def _first(rows: dict[str, float], depth: int) -> dict[str, float]:
    """The best documents; of equal scores the greater id goes first."""
    ordered = sorted(rows, reverse=True)
    ordered.sort(key=lambda document: -rows[document])
    return {document: rows[document] for document in ordered[:depth]}


# ── queries keep their details as long as they fit; those that differ most go first


def kept(sizes: list[list[int]], differences: list[list[float]], limit: int) -> list[list[bool]]:
    chosen = choose_queries(list(map(np.array, sizes)), list(map(np.array, differences)), limit)
    return [keep.tolist() for keep in chosen]


def test_those_that_differ_most_are_kept() -> None:
    sizes, differences = [[4, 3], [3, 2]], [[0.0, 0.5], [1.0, 0.0]]
    # Of equal ones, the first goes before the others.
    assert kept(sizes, differences, 11) == [[True, True], [True, False]]
    assert kept(sizes, differences, 9) == [[False, True], [True, False]]
    assert kept(sizes, differences, 2) == [[False] * 2] * 2


def test_the_estimate_is_near_the_json() -> None:
    runs, collected = collect(make_case(3), SYSTEMS[3])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    top = list_top_documents(make_system(SYSTEMS[3]), runs, collected.tops["s"])
    text = json.dumps([ranks.to_dict(), top.to_dict()], separators=(",", ":"))
    estimate = estimate_sizes(ranks, [top]).sum()
    assert 0.5 < estimate / len(text) < 2


def test_a_text_counts_once_a_query() -> None:
    runs, collected = collect(make_case(3), SYSTEMS[3])
    ranks = make_relevant_ranks(runs, collected.relevant, collected.ranks)
    top = list_top_documents(make_system(SYSTEMS[3]), runs, collected.tops["s"])
    texts = estimate_sizes(ranks, [top, top], excerpt=100) - estimate_sizes(ranks, [top, top])
    shown = {
        *zip(ranks.query.tolist(), ranks.documents, strict=True),
        *zip(top.query.tolist(), top.documents, strict=True),
    }
    for q in range(len(runs.queries)):
        assert texts[q] == 100 * sum(query == q for query, _ in shown)


# ── overlap of sources, against loops over sets


def overlap_of(case: Case, depth: int) -> SourceOverlap:
    runs = case.align()
    ranks = make_relevant_ranks(runs, list_relevant(runs, case.qrels, 1), {})
    return measure_overlap(runs, ranks, depth)


@settings(max_examples=examples(25))
@given(st.builds(make_case, st.integers(0, 10**6)), st.integers(1, 12))
def test_overlap(case: Case, depth: int) -> None:
    found = overlap_of(case, depth)
    runs = case.align()
    lists = {name: final_lists(make_system({"runs": [name]}), runs) for name in SOURCES}
    relevant = {
        (query, document)
        for query in runs.queries
        for document, grade in case.judged[query].items()
        if grade > 0
    }
    assert found.relevant == len(relevant)
    for a, name in enumerate(SOURCES):
        hits = {(q, d) for q, d in relevant if d in lists[name][q]}
        others = {(q, d) for q, d in hits for o in SOURCES if o != name and d in lists[o][q]}
        assert found.returned[a] == len(hits)
        assert found.alone[a] == len(hits - others)
        for b, other in enumerate(SOURCES):
            shares = []
            for query in runs.queries:
                first, second = lists[name][query][:depth], lists[other][query][:depth]
                if first or second:
                    common = set(first) & set(second)
                    shares.append(len(common) / max(len(first), len(second)))
            np.testing.assert_allclose(found.shared[a, b], np.mean(shares), rtol=1e-12)
