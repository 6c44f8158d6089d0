"""What changed between two reports."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.compared_reports import add_comparisons, explain_untested
from fusion_bench.evaluation.report_changes import CollectionChange, ReportChange, find_changes
from fusion_bench.evaluation.report_file import Report, read_last_report
from fusion_bench.stats.comparison_family import compare_with_baseline
from tests.evaluation.test_run_experiment import report
from tests.report import cases
from tests.report.cases import PRIMARY, system
from tests.tiny import EXPERIMENT, edit


def change_of(root: Path, before: Report) -> ReportChange:
    return find_changes(before, report(root))


def only(change: ReportChange) -> CollectionChange:
    [collection] = change.collections
    return collection


def test_nothing_changes_by_itself(root: Path) -> None:
    change = change_of(root, report(root))
    assert not change.is_changed
    assert [row.status for row in only(change).systems] == ["both", "both"]
    assert only(change).queries.rows == ()
    assert (change.settings, change.versions) == ((), ())


def test_a_parameter_and_what_it_did(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "fusion: {method: rrf_v2}", "fusion: {method: rrf_v2, k: 7}")
    edit(root, EXPERIMENT, "position_aware, reranker: r", "replace, reranker: r, min_score: 0.5")
    edit(root, EXPERIMENT, "baseline: one", "baseline: one\nalpha: 0.1")
    edit(root, EXPERIMENT, "  one:\n", "  one:\n    fusion: {method: rrf, k: 60.0}\n")  # as it was
    change = change_of(root, before)
    assert change.is_changed
    assert [(each.path, each.then, each.now) for each in change.settings] == [
        ("alpha", "0.05", "0.1")
    ]
    one, two = only(change).systems
    assert not one.is_changed
    assert (one.then, one.now, one.difference) == (1, 1, 0)
    paths = {each.path: (each.then, each.now) for each in two.config}
    assert paths["fusion.k"] == ("60", "7")
    assert paths["blend.method"] == ('"position_aware"', '"replace"')
    assert paths["blend.min_score"] == ("null", "0.5")
    assert paths["blend.retrieval"][1] is None
    assert two.is_changed


def test_values_means_and_queries(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    change = change_of(root, before)
    one, two = only(change).systems
    # `a` alone has RR 1/2 on all three queries, where rrf has 1.
    assert (one.then, one.now, one.difference) == (1, 0.5, -0.5)
    assert (one.better, one.worse, two.better, two.worse) == (0, 3, 0, 0)
    assert (one.answer_then, one.answer_now) == (None, None)
    assert (two.answer_then, two.answer_now) == ("identical", "not shown")
    queries = only(change).queries
    assert [(row.query, row.system, row.then, row.now) for row in queries.rows] == [
        (query, "one", 1, 0.5) for query in ("q1", "q2", "q4")
    ]
    assert queries.changed == 3
    few = find_changes(before, report(root), queries=1).collections[0].queries
    assert (len(few.rows), few.changed) == (1, 3)
    assert repr(few).startswith("QueryChanges(1 of 3 ")


def test_systems_queries_and_data_come_and_go(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "  one:", "  new: {runs: [b]}\n  one:")
    text = (root / EXPERIMENT).read_text(encoding="utf-8")
    (root / EXPERIMENT).write_text(text[: text.index("  two:")], encoding="utf-8")
    edit(root, "datasets/tiny/queries.jsonl", '"q4", "type": "local", "split": "test"', '"q4"')
    found = only(change_of(root, before))
    assert [(row.name, row.status) for row in found.systems] == [
        ("new", "new"),
        ("one", "both"),
        ("two", "gone"),
    ]
    assert (found.queries_added, found.queries_removed) == (0, 1)
    assert found.data == ("queries.type", "queries.split")  # but not a list that nothing reads
    assert (found.systems[1].then, found.systems[1].difference) == (1, 0)
    assert found.systems[2].now is None


def test_another_measure_has_no_difference(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "[RR@10, nDCG@10]", "[R@5]")
    found = only(change_of(root, before))
    assert found.measure == "R@5"
    assert [(row.then, row.difference) for row in found.systems] == [(None, None)] * 2
    assert found.systems[0].now == 1
    assert {row.status for row in found.systems} == {"both"}


def test_collections_come_and_go(root: Path) -> None:
    before = report(root)
    edit(root, "datasets/tiny/dataset.yaml", "name: tiny", "name: other")
    change = change_of(root, before)
    assert [(each.name, each.status) for each in change.collections] == [
        ("other", "new"),
        ("tiny", "gone"),
    ]
    assert change.is_changed


def test_a_change_is_json_and_a_frame(root: Path) -> None:
    before = report(root)
    edit(root, EXPERIMENT, "  one:\n    runs: [a, b]", "  one:\n    runs: [a]")
    change = change_of(root, before)
    data = json.loads(json.dumps(change.to_dict(), allow_nan=False))
    assert data["collections"][0]["systems"][0]["config"] == [
        {"path": "runs", "then": '["a", "b"]', "now": '["a"]'}
    ]
    frame = change.to_pandas()
    assert frame["collection"].tolist() == ["tiny", "tiny"]
    assert frame["config"].tolist() == ["runs", ""]
    assert len(change._table_columns(1)["name"]) == 1


def test_the_last_report_never_stands_in_the_way(root: Path) -> None:
    folder = root / "out"
    assert read_last_report(folder) is None
    folder.mkdir()
    stored = report(root)
    (folder / "report.json").write_text(stored.model_dump_json(), encoding="utf-8")
    assert read_last_report(folder) == stored
    for damaged in ("{}", "no JSON", stored.model_dump_json()[:-9], "\x00"):
        (folder / "report.json").write_text(damaged, encoding="utf-8")
        assert read_last_report(folder) is None
    (folder / "report.json").unlink()
    (folder / "report.json").mkdir()
    assert read_last_report(folder) is None


# ── every system of two reports against itself


BEFORE = np.linspace(0.2, 0.6, 40)
#: On every query better, by more or less.
BETTER = BEFORE + np.linspace(0.05, 0.15, 40)


def of_values(*rows: tuple[str, np.ndarray], **changes: Any) -> Report:  # noqa: ANN401 - fields of any type
    systems = [
        system(name, *map(float, values), judged_only=[*map(float, values)])
        for name, values in rows
    ]
    return cases.report(cases.collection(*systems, **changes))


def compared_change(old: Report, new: Report) -> ReportChange:
    return add_comparisons(find_changes(old, new), old, new)


OLD = of_values(("base", BEFORE), ("mine", BEFORE), ("gone", BEFORE))


def test_each_system_is_compared_with_itself_as_one_family() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER), ("other", BEFORE))
    rows = {row.name: row for row in compared_change(OLD, new).collections[0].systems}
    assert {name: row.answer for name, row in rows.items()} == {
        "base": "identical",
        "mine": "better",
        "other": None,
        "gone": None,
    }
    mine = rows["mine"].comparison
    assert mine is not None
    (same,) = compare_with_baseline(
        PRIMARY,
        {"then": BEFORE, "mine": BETTER},
        "then",
        groups=new.collections[0].groups,
        is_bounded=True,
        seed=7,
    )
    assert mine.difference == pytest.approx(same.difference, abs=1e-15)
    assert (mine.low, mine.high) == pytest.approx((same.low, same.high), abs=1e-12)
    assert mine.p == pytest.approx(same.p)
    assert (mine.wins, mine.losses) == (40, 0)
    assert mine.baseline_mean == pytest.approx(BEFORE.mean())
    assert mine.candidate_mean == pytest.approx(BETTER.mean())
    assert (mine.baseline, mine.candidate) == ("mine", "mine")


def test_more_changed_systems_widen_the_intervals() -> None:
    def width(new: Report) -> float:
        row = next(r for r in compared_change(OLD, new).collections[0].systems if r.name == "mine")
        assert row.low is not None
        assert row.high is not None
        return row.high - row.low

    noise = np.random.default_rng(3).normal(0, 0.1, 40)
    alone = of_values(("base", BEFORE), ("mine", BEFORE + noise))
    both = of_values(("base", BEFORE + noise[::-1]), ("mine", BEFORE + noise))
    assert width(both) > width(alone)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queries": tuple(f"p{i}" for i in range(40))}, "the queries differ"),
        ({"groups": ("g",) * 40}, "the groups of the queries differ"),
        ({"binary_relevance": 2}, "the binary relevance differs"),
        ({"digests": {"qrels": "1" * 64}}, "the judgments differ"),
        ({"measures": ("RR@10",)}, "the primary measures differ"),
    ],
)
def test_nothing_is_tested_where_the_values_are_no_pairs(
    changes: dict[str, object], reason: str
) -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER), **changes)
    assert explain_untested(OLD.collections[0], new.collections[0]) == reason
    rows = compared_change(OLD, new).collections[0].systems
    assert [row.comparison for row in rows] == [None] * 3
    assert explain_untested(OLD.collections[0], OLD.collections[0]) is None


def test_gaps_and_missing_measures_are_not_tested() -> None:
    gap = BETTER.copy()
    gap[3] = np.nan
    new = of_values(("base", BETTER), ("mine", gap))
    rows = {row.name: row.answer for row in compared_change(OLD, new).collections[0].systems}
    assert rows == {"base": "better", "mine": None, "gone": None}


def test_a_report_without_settings_says_what_to_do() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER))
    bare = new.model_copy(update={"settings": {}})
    with pytest.raises(ConfigError, match="no setting 'alpha'"):
        compared_change(OLD, bare)


def test_unjudged_documents_may_decide() -> None:
    """Better by .1, but worse over the judged documents alone."""
    new = of_values(("base", BEFORE), ("mine", BETTER))
    (collection,) = new.collections
    base, mine = collection.systems
    worse = mine.model_copy(
        update={"judged_only": tuple((BEFORE - 0.1).tolist()), "unjudged_share": 0.4}
    )
    new = new.model_copy(
        update={"collections": (collection.model_copy(update={"systems": (base, worse)}),)}
    )
    rows = {row.name: row.answer for row in compared_change(OLD, new).collections[0].systems}
    assert rows["mine"] == "unjudged decide"


def with_repeats(report: Report, name: str, trials: np.ndarray) -> Report:
    [collection] = report.collections
    row = collection.system(name)
    result = row.measures[PRIMARY].model_copy(update={"trials": tuple(map(tuple, trials.tolist()))})
    changed = row.model_copy(update={"measures": {**row.measures, PRIMARY: result}})
    systems = tuple(changed if each.name == name else each for each in collection.systems)
    collection = collection.model_copy(update={"systems": systems})
    return report.model_copy(update={"collections": (collection,)})


def answer_of(old: Report, new: Report) -> str | None:
    rows = {row.name: row for row in compared_change(old, new).collections[0].systems}
    return rows["mine"].answer


def test_a_change_that_trials_explain_is_not_shown() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER))
    moves = np.array([-0.2, 0.0, 0.2])[:, None]
    assert answer_of(OLD, new) == "better"
    assert answer_of(OLD, with_repeats(new, "mine", BETTER + moves)) == "not shown"
    assert answer_of(with_repeats(OLD, "mine", BEFORE + moves), new) == "not shown"
    before = with_repeats(OLD, "mine", BEFORE - moves[:2])
    assert answer_of(before, with_repeats(new, "mine", BETTER + moves)) == "not shown"
    steady = with_repeats(new, "mine", BETTER + 0 * moves)
    assert answer_of(with_repeats(OLD, "mine", BEFORE + 0 * moves), steady) == "better"
