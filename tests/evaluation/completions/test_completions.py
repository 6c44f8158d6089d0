"""What values judgments could still have given."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.checks import completed_measures
from fusion_bench.checks.completed_measures import build_model
from fusion_bench.checks.completions import CompletionModel
from fusion_bench.checks.unjudged import find_bounds, grade_scale
from fusion_bench.cli import main
from fusion_bench.data.alignment import align
from fusion_bench.data.ordering import FloatArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.experiment.system import System
from fusion_bench.measures import parse_measure
from fusion_bench.ranking.final_lists import list_parts
from fusion_bench.report.evaluation_tables import slice_table
from fusion_bench.stats.unjudged import QueryBounds
from tests import unjudged_project
from tests.evaluation.completions.cases import (
    DOCUMENTS,
    SCALE,
    Case,
    cases,
    make_top,
    of_last_query,
    slow_differences,
)
from tests.tiny import edit

NAMES = {"exp": "nDCG(dcg='exp-log2')"}


def make_model(name: str, case: Case, cutoff: int) -> CompletionModel:
    top = make_top(*case, cutoff)
    model = build_model(parse_measure(f"{NAMES.get(name, name)}@{cutoff}"), top, SCALE)
    assert model is not None
    return model


@pytest.mark.parametrize("name", ["nDCG", "exp", "RR", "Success", "P", "R", "AP"])
@given(case=cases(), cutoff=st.integers(1, 6))
def test_both_ends_and_effects_of_grades(name: str, case: Case, cutoff: int) -> None:
    model = make_model(name, case, cutoff)
    slow = slow_differences(name, *case, cutoff)
    ends = model.find_extremes()
    assert ends.is_exact
    assert of_last_query(ends.low) == pytest.approx(min(slow.values()), abs=1e-12)
    assert of_last_query(ends.high) == pytest.approx(max(slow.values()), abs=1e-12)
    assert ends.low[0] == ends.high[0] == 0
    for values, grades in ((ends.low, ends.low_grades), (ends.high, ends.high_grades)):
        check_effects(model, name, case, cutoff, grades, of_last_query(values))


def check_effects(
    model: CompletionModel, name: str, case: Case, cutoff: int, grades: np.ndarray, end: float
) -> None:
    """The grades reach the end; each grade of one document in turn, by the slow loop."""
    top = make_top(*case, cutoff)
    ids = [top.runs.vocabulary[code] for code in top.document.tolist()]
    unknown = {
        document: grade
        for document, grade, query, judged in zip(
            ids, grades.tolist(), top.query.tolist(), top.judged.tolist(), strict=True
        )
        if query == 1 and not judged
    }
    slow = {
        frozenset(added): value for added, value in slow_differences(name, *case, cutoff).items()
    }
    assert slow[frozenset(unknown.items())] == pytest.approx(end, abs=1e-12)
    effects = model.grade_effects(grades)
    assert not effects[top.judged].any()
    for row, document in enumerate(ids):
        if document in unknown and top.query[row] == 1 and not top.judged[row]:
            values = [slow[frozenset({**unknown, document: g}.items())] for g in SCALE]
            assert effects[row] == pytest.approx(max(values) - min(values), abs=1e-12)


@given(case=cases(), cutoff=st.integers(1, 6))
def test_no_completion_lies_beyond_the_bound_of_average_precision(case: Case, cutoff: int) -> None:
    slow = slow_differences("AP", *case, cutoff)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completed_measures, "MOST_ENUMERATED", 0)
        ends = make_model("AP", case, cutoff).find_extremes()
        alone = make_model("AP", (case[0], case[1], ["z"]), cutoff).find_extremes()
    assert of_last_query(ends.low) <= min(slow.values()) + 1e-12
    assert of_last_query(ends.high) >= max(slow.values()) - 1e-12
    assert not ends.is_exact or len(slow) == 1
    # A document beyond the other list leaves one list alone, for which the bound is exact.
    single = slow_differences("AP", case[0], case[1], [], cutoff)
    assert of_last_query(alone.high) == pytest.approx(max(single.values()), abs=1e-12)


@pytest.mark.parametrize("name", ["Judged@5", "nDCG(judged_only=True)@5"])
def test_other_measures_have_no_model(name: str) -> None:
    top = make_top({"a": 1}, ["a", "b"], ["b"], 5)
    assert build_model(parse_measure(name), top, SCALE) is None


# ── bounds of one system: by the slow loop, and what a report makes of them


EMPTY: list[str] = []


MEASURES = ["nDCG", "RR", "R", "AP", "P", "Success"]
List: TypeAlias = tuple[dict[str, int], list[str]]


def all_bounds(names: list[str], lists: list[List]) -> tuple[QueryBounds | None, ...]:
    lists = [({"a": 2}, ["a"]), *lists]
    qrels = Qrels.from_dict({f"q{i}": grades for i, (grades, _) in enumerate(lists)})
    scores = {
        f"q{i}": {d: -float(r) for r, d in enumerate(ids)} for i, (_, ids) in enumerate(lists)
    }
    runs = align(qrels, [Run.from_dict("r", scores)])
    parts = list_parts(System(name="r", runs=("r",)), runs)
    return find_bounds([parse_measure(name) for name in names], runs, parts)


def bounds_of(name: str, grades: dict[str, int], ids: list[str]) -> QueryBounds | None:
    (bounds,) = all_bounds([name], [(grades, ids)])
    return bounds


def ends_of(bounds: QueryBounds | None) -> tuple[FloatArray, FloatArray]:
    assert bounds is not None
    assert bounds.ends is not None
    return bounds.ends


@given(
    case=st.lists(cases(), min_size=1, max_size=2),
    cutoff=st.integers(1, 6),
    chosen=st.permutations(MEASURES),
)
def test_bounds_equal_those_of_the_slow_loop(
    case: list[Case], cutoff: int, chosen: list[str]
) -> None:
    """Of several measures and queries at once, of each measure with its own cutoff."""
    lists = [(grades, ids) for grades, ids, _ in case]
    whole = [name for name in chosen[:2] if name in {"nDCG", "RR", "AP"}]
    measures = [*(f"{name}@{cutoff}" for name in chosen[:3]), *whole]
    known = all_bounds(measures, lists)
    if known[0] is None:
        assert all(set(ids) <= {*grades} for grades, ids in lists)
        assert set(known) == {None}
        return
    for name, bounds in zip(measures, known, strict=True):
        low, high = ends_of(bounds)
        assert bounds is not None
        assert bounds.depth == (cutoff if "@" in name else 10)
        for i, (grades, ids) in enumerate(lists, 1):
            slow = slow_differences(
                name.split("@")[0], grades, ids, EMPTY, cutoff if "@" in name else len(DOCUMENTS)
            ).values()
            assert low[i] == pytest.approx(min(slow), abs=1e-12)
            assert high[i] == pytest.approx(max(slow), abs=1e-12)
            shown = ids[: bounds.depth]
            assert bounds.judged[i] == pytest.approx(sum(d in grades for d in shown) / len(shown))


def test_bounds_of_a_long_list_on_average_precision() -> None:
    """Too many documents for any loop over completions: the best and worst few of them."""
    ids = [f"d{i}" for i in range(3000)]
    low, high = ends_of(bounds_of("AP", {"d9": 1}, ids))
    assert high[-1] == pytest.approx(1.0)  # the whole list
    assert low[-1] == pytest.approx(
        min((1 / 10 + sum((k + 2) / (3001 - j + k) for k in range(j))) / (j + 1) for j in range(60))
    )


def test_what_has_no_bounds() -> None:
    assert bounds_of("nDCG@3", {"b": 1}, ["b"]) is None  # everything is judged
    judged = bounds_of("Judged@2", {"b": 1}, ["b", "c", "d"])
    assert judged is not None
    assert judged.judged[-1] == 1 / 2
    assert judged.ends is None
    assert judged.record.model_dump() == {"depth": 2, "judged": 0.75, "low": None, "high": None}
    whole = bounds_of("Judged", {"b": 1}, ["b", *(f"d{i}" for i in range(11))])
    assert whole is not None
    assert (whole.depth, whole.judged[-1]) == (10, 1 / 10)


def test_the_scale() -> None:
    qrels = Qrels.from_dict({"q": {"a": 3, "b": -2}})
    assert [*grade_scale(qrels)] == [0, 1, 2, 3]
    assert [*grade_scale(replace(qrels, grades=qrels.grades * 0))] == [0, 1]
    assert [*grade_scale(replace(qrels, grades=qrels.grades * 100))] == [0, 300]


def test_a_report_states_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(unjudged_project.make(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    measures = "measures: [RR@10, Success@1, Judged@2]"
    edit(tmp_path, unjudged_project.EXPERIMENT, "measures: [RR@10]", measures)
    words = ["eval", unjudged_project.EXPERIMENT, "-v", "--no-html", "--out", "out"]
    assert main(words) == 0
    out = capsys.readouterr().out
    [collection] = read_report(Path("out/report.json")).collections
    bounds = collection.system("fresh").measures["RR@10"].bounds
    assert bounds is not None
    assert (bounds.low, bounds.high) == pytest.approx(((1 / 2 + 1 / 3) / 2, 1.0))
    assert bounds.depth == 10
    assert bounds.judged == pytest.approx((3 / 5 + 3 / 4) / 2)
    assert collection.system("fresh").slice_bounds == ()
    assert "Judged@10" in out
    assert "0.4167…1.0000" in out
    first = collection.system("fresh").measures["Success@1"].bounds
    assert first is not None
    assert (first.depth, first.judged, first.low, first.high) == (1, 0, 0, 1)
    assert "Judged@1 " in out
    assert "0.0000…1.0000" in out
    assert out.count(" for Judged@2.") == 1
    floor = collection.reference_rows[0]
    assert floor.note in {"fresh", "pooled"}
    row = collection.system(floor.note).measures["RR@10"].bounds
    assert floor.measures["RR@10"].bounds == row
    assert collection.reference_rows[1].measures["RR@10"].bounds is None
    page = Path("out/report.md").read_text(encoding="utf-8")
    assert "0.4167…1.0000" in page
    edit(tmp_path, unjudged_project.DATASET, "name: mine", "name: mine\njudgments: complete")
    assert main(words) == 0
    assert "if judged" not in capsys.readouterr().out


def test_comparisons_and_slices_state_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(unjudged_project.make(tmp_path))
    edit(tmp_path, unjudged_project.EXPERIMENT, "[RR@10]", "[RR@10, Success@1]")
    edit(tmp_path, unjudged_project.DATASET, "runs:", "queries: queries.jsonl\nruns:")
    types = (f'{{"id": "q{q}", "type": "{("even", "odd")[q % 2]}"}}\n' for q in range(60))
    (tmp_path / "datasets/mine/queries.jsonl").write_text("".join(types), encoding="utf-8")
    assert main(["eval", unjudged_project.EXPERIMENT, "--no-plots", "--out", "out"]) == 0
    report = read_report(Path("out/report.json"))
    [collection] = report.collections
    table = slice_table(report, collection, "type")
    assert table is not None
    place = [column.header for column in table.columns].index("Judged@10")
    shares = [row.cells[place] for row in table.rows if row.cells[1] == "fresh"]
    assert shares == ["60.0 %", "75.0 %"]
    ends = [row.cells[place + 1] for row in table.rows if row.cells[1] == "fresh"]
    assert ends == ["0.3333…1.0000", "0.5000…1.0000"]
    capsys.readouterr()
    assert main(["compare", "out/report.json", "--json"]) == 0
    [record] = json.loads(capsys.readouterr().out)
    measures = {row.name: row.measures for row in collection.systems}
    for system in ("pooled", "fresh", "sum"):
        known = {name: measures[system][name].bounds for name in collection.measures}
        stated = record["bounds"][system]
        assert stated == {name: each and each.model_dump() for name, each in known.items()}
    assert main(["compare", "out/report.json", "-v"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Judged@10 100.0 %, if judged 0.7500…0.7500;" in shown
