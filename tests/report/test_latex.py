"""The table of a paper: means, marks against the baseline, letters for all pairs."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusion_bench as fb
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.report_file import Report
from fusion_bench.report.latex import assign_letters, find_columns, render_paper_tables
from fusion_bench.stats.comparison_family import compare_with_baseline

MEASURES = ["nDCG@5", "RR@5", "Judged@5"]


def make_report() -> Report:
    rng = np.random.default_rng(4)
    qrels = {f"q{q}": {f"d{d}": int(d == 0) for d in range(6)} for q in range(100)}
    runs: dict[str, dict[str, dict[str, float]]] = {}
    for name, strength in {"base_1": 1.0, "good": 4.0, "alike": 1.05, "bad": -3.0}.items():
        runs[name] = {
            query: {d: float(rng.normal() + strength * (d == "d0")) for d in documents}
            for query, documents in qrels.items()
        }
    return fb.compare(qrels, runs, measures=MEASURES, allow_suspect=True).report


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report()


def rows_of(text: str) -> dict[str, list[str]]:
    rows = re.findall(r"^ +(.*) \\\\$", text, flags=re.MULTILINE)
    return {name.replace("\\", ""): cells for name, *cells in (row.split(" & ") for row in rows)}


def test_every_system_has_its_means_and_marks(report: Report) -> None:
    text = render_paper_tables(report)
    rows = rows_of(text)
    assert rows.pop("system") == ["nDCG@5", "MRR@5", "Judged@5"]
    assert list(rows) == ["base_1", "good", "alike", "bad"]
    for row in report.collections[0].systems:
        if row.kind == "system":
            means = [f"{row.measures[name].mean:.4f}" for name in MEASURES]
            assert [cell[:6] for cell in rows[row.name]] == means
    marks = {name: [cell[6:] for cell in cells] for name, cells in rows.items()}
    assert marks == {
        "base_1": ["", "", ""],
        "good": [r"$^{\uparrow}$", r"$^{\uparrow}$", ""],
        "alike": ["", "", ""],
        "bad": [r"$^{\downarrow}$", r"$^{\downarrow}$", ""],
    }
    assert all(part in text for part in (r"base\_1", "booktabs", "100 queries", "3 comparisons"))


def test_each_measure_is_adjusted_like_the_primary_one(report: Report) -> None:
    """Marks of RR@5 are the answers of a family on RR@5, not of unadjusted tests."""
    (collection,) = report.collections
    values = {name: each.values for name, each in collection.table.values_of("RR@5").items()}
    family = compare_with_baseline(
        "RR@5", values, "base_1", groups=collection.groups, is_bounded=True, seed=0
    )
    rows = rows_of(render_paper_tables(report, columns=["RR@5"]))
    for item in family:
        arrow = {"better": "up", "worse": "down"}.get(item.answer or "", "")
        assert (f"\\{arrow}arrow" in rows[item.candidate][0]) == bool(arrow)


def test_another_baseline_and_fewer_rows(report: Report) -> None:
    text = render_paper_tables(
        report,
        baseline="good",
        candidates=["alike"],
        columns=["rr@5", "difference", "interval", "p"],
    )
    rows = rows_of(text)
    assert list(rows) == ["system", "good", "alike"]
    assert rows["good"][1:] == ["--"] * 3
    mean, difference, interval, p = rows["alike"]
    assert r"\downarrow" in mean
    assert difference.startswith("$-$0.")
    assert interval.startswith("{[}$-$0.")
    assert re.fullmatch(r".*\.0\d*", p)


def test_letters_stand_at_each_mean(report: Report) -> None:
    text = render_paper_tables(report, letters=True, columns=["nDCG@5"])
    letters = {
        name: re.findall(r"mathrm{(\w+)}", cells[0]) for name, cells in rows_of(text).items()
    }
    assert letters == {"system": [], "base_1": ["b"], "good": ["a"], "alike": ["b"], "bad": ["c"]}
    assert "all pairs" in text


def test_unjudged_documents_that_decide_are_marked() -> None:
    """The candidate is worse, but better over judged documents alone."""
    qrels = {f"q{q}": {"a": 1, "b": 0} for q in range(40)}
    runs = {
        "base": {query: {"b": 2.0, "a": 1.0} for query in qrels},
        "new": {query: {"x": 3.0, "y": 2.0, "a": 1.0} for query in list(qrels)[:30]}
        | {query: {"b": 2.0, "a": 1.0} for query in list(qrels)[30:]},
    }
    result = fb.compare(qrels, runs, measures=["RR@5", "P@5"], allow_suspect=True)
    assert result.report.collections[0].comparisons[0].answer == "unjudged decide"
    text = render_paper_tables(result.report)
    assert rows_of(text)["new"][0].endswith("$^{?}$")
    assert "judged documents decide" in text


def test_one_system_has_a_row_without_a_test() -> None:
    report = fb.compare({"q": {"a": 1}}, {"only": {"q": {"a": 1.0}}}, measures=["RR"]).report
    assert rows_of(render_paper_tables(report)) == {"system": ["MRR"], "only": ["1.0000"]}


def test_columns_are_measures_of_the_report() -> None:
    measures = ["nDCG@10", "RR(rel=2)@10"]
    assert find_columns([], measures) == tuple(measures)
    assert find_columns(["mrr@10", "p"], measures, 2) == ("RR(rel=2)@10", "p")
    with pytest.raises(UnknownNameError, match="'AP'"):
        find_columns(["AP"], measures)


NAMES = [f"s{i}" for i in range(6)]
PAIRS = [(low, high) for i, high in enumerate(NAMES) for low in NAMES[i + 1 :]]


@given(st.sets(st.sampled_from(PAIRS)))
def test_two_systems_share_a_letter_exactly_where_no_difference_is_shown(
    different: set[tuple[str, str]],
) -> None:
    superior = {name: frozenset(high for low, high in different if low == name) for name in NAMES}
    letters = assign_letters(NAMES, superior)
    assert "a" in letters[NAMES[0]]
    for low, high in PAIRS:
        assert bool(set(letters[low]) & set(letters[high])) == ((low, high) not in different)
