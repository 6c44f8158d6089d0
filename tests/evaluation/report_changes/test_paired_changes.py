"""Every system of two reports against itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.compared_reports import add_comparisons, explain_untested
from fusion_bench.evaluation.report_changes import ReportChange, find_changes
from fusion_bench.evaluation.report_file import Report
from fusion_bench.stats.comparison_family import compare_with_baseline
from tests.report import cases
from tests.report.cases import PRIMARY, system

BEFORE = np.linspace(0.2, 0.6, 40)
#: On every query better, by more or less.
BETTER = BEFORE + np.linspace(0.05, 0.15, 40)


def of_values(*rows: tuple[str, np.ndarray], **changes: Any) -> Report:  # noqa: ANN401 - fields of any type
    systems = [
        system(name, *map(float, values), judged_only=[*map(float, values)])
        for name, values in rows
    ]
    return cases.report(cases.collection(*systems, **changes))


def change_of(old: Report, new: Report) -> ReportChange:
    return add_comparisons(find_changes(old, new), old, new)


OLD = of_values(("base", BEFORE), ("mine", BEFORE), ("gone", BEFORE))


def test_each_system_is_compared_with_itself_as_one_family() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER), ("other", BEFORE))
    rows = {row.name: row for row in change_of(OLD, new).collections[0].systems}
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
        primary=True,
        is_bounded=True,
        seed=7,
    )
    assert mine.difference == pytest.approx(same.difference, abs=1e-15)
    assert (mine.low, mine.high) == pytest.approx((same.low, same.high), abs=1e-12)
    assert (mine.p_adjusted, mine.wins, mine.losses) == (same.p_adjusted, 40, 0)
    assert mine.baseline_mean == pytest.approx(BEFORE.mean())
    assert mine.candidate_mean == pytest.approx(BETTER.mean())
    assert (mine.baseline, mine.candidate) == ("mine", "mine")


def test_more_changed_systems_widen_the_intervals() -> None:
    def width(new: Report) -> float:
        row = next(r for r in change_of(OLD, new).collections[0].systems if r.name == "mine")
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
    rows = change_of(OLD, new).collections[0].systems
    assert [row.comparison for row in rows] == [None] * 3
    assert explain_untested(OLD.collections[0], OLD.collections[0]) is None


def test_gaps_and_missing_measures_are_not_tested() -> None:
    gap = BETTER.copy()
    gap[3] = np.nan
    new = of_values(("base", BETTER), ("mine", gap))
    rows = {row.name: row.answer for row in change_of(OLD, new).collections[0].systems}
    assert rows == {"base": "better", "mine": None, "gone": None}


def test_a_report_without_settings_says_what_to_do() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER))
    bare = new.model_copy(update={"settings": {}})
    with pytest.raises(ConfigError, match="no setting 'alpha'"):
        change_of(OLD, bare)


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
    rows = {row.name: row.answer for row in change_of(OLD, new).collections[0].systems}
    assert rows["mine"] == "unjudged decide"


def test_rows_have_intervals_as_json_and_as_a_frame() -> None:
    change = change_of(OLD, of_values(("base", BEFORE), ("mine", BETTER)))
    frame = change.to_pandas().set_index("name")
    assert frame.loc["mine", "answer"] == "better"
    mine = frame.to_dict("index")["mine"]
    assert mine["low"] < mine["difference"] < mine["high"]
    assert frame.loc["gone", ["low", "high", "p_adjusted"]].isna().all()
    record = json.loads(json.dumps(change.to_dict()))
    assert record["collections"][0]["systems"][1]["comparison"]["wins"] == 40


def with_trials(report: Report, name: str, trials: np.ndarray) -> Report:
    """The report with the values of each trial, (T, Q), of one system."""
    [collection] = report.collections
    row = collection.system(name)
    result = row.measures[PRIMARY].model_copy(update={"trials": tuple(map(tuple, trials.tolist()))})
    changed = row.model_copy(update={"measures": {**row.measures, PRIMARY: result}})
    systems = tuple(changed if each.name == name else each for each in collection.systems)
    collection = collection.model_copy(update={"systems": systems})
    return report.model_copy(update={"collections": (collection,)})


def answer_of(old: Report, new: Report) -> str | None:
    rows = {row.name: row for row in change_of(old, new).collections[0].systems}
    return rows["mine"].answer


def test_a_change_that_trials_explain_is_not_shown() -> None:
    new = of_values(("base", BEFORE), ("mine", BETTER))
    moves = np.array([-0.2, 0.0, 0.2])[:, None]
    assert answer_of(OLD, new) == "better"
    assert answer_of(OLD, with_trials(new, "mine", BETTER + moves)) == "not shown"
    assert answer_of(with_trials(OLD, "mine", BEFORE + moves), new) == "not shown"
    before = with_trials(OLD, "mine", BEFORE - moves[:2])
    assert answer_of(before, with_trials(new, "mine", BETTER + moves)) == "not shown"
    steady = with_trials(new, "mine", BETTER + 0 * moves)
    assert answer_of(with_trials(OLD, "mine", BEFORE + 0 * moves), steady) == "better"
