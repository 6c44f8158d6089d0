"""Every benchmark and study runs at toy size; their figures and tables are right."""

import json
import re
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import ROOT, find_benchmarks, main
from benchmarks.cases import Size
from benchmarks.engine import MEASURES, fusion_bench_task
from benchmarks.huge import further_tables
from benchmarks.studies.campaigns import table as campaigns
from benchmarks.studies.choice_rules import table as choice_rules
from benchmarks.studies.choice_rules.results import read_results
from benchmarks.studies.front import mean_gains
from benchmarks.studies.tuning_table import RESULTS, format_table, summarize_rivals
from benchmarks.synthetic import make_aligned_runs
from benchmarks.table import (
    encode_csv,
    format_rows,
    keep_columns,
    markdown,
    pivot,
    read_rows,
    replace_between_marks,
    write_csv,
)
from benchmarks.timing import Row
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.ranking.system_scores import Scores
from tests.data.cases import assert_same
from tests.report.tuning_cases import front

ROWS: list[Row] = [
    {"size": "1 × 2", "ranx ms": 1234.5, "one ratio": 99.6, "one": "a"},
    {"size": "3 × 4", "ranx ms": 0.5, "one ratio": 1234.5, "one": "b"},
]


def test_synthetic_arrays_are_what_aligning_the_same_lists_gives() -> None:
    runs = make_aligned_runs(Size("small", 30, 3, 10, 1.3, 40), seed=4)
    lists = [
        {
            query: {
                runs.vocabulary[runs.documents[n]]: float(runs.scores[s, n])
                for n in range(runs.offsets[q], runs.offsets[q + 1])
                if runs.ranks[s, n]
            }
            for q, query in enumerate(runs.queries)
        }
        for s in range(3)
    ]
    given = [Run.from_dict(name, rows) for name, rows in zip(runs.sources, lists, strict=True)]
    again = align(make_qrels(runs), given)
    for name in ("offsets", "ranks", "scores", "grades", "judged", "ideal_offsets", "ideal_grades"):
        assert getattr(again, name).tobytes() == getattr(runs, name).tobytes(), name
    names = [[table.vocabulary[d] for d in table.documents] for table in (runs, again)]
    assert names[0] == names[1]
    assert_same(make_aligned_runs(Size("small", 30, 3, 10, 1.3, 40), seed=4), runs)


def make_qrels(runs: AlignedRuns) -> Qrels:
    """The grades of the candidates, and a document for each judged one that no run returned."""
    judgments: dict[str, dict[str, int]] = {}
    for q, query in enumerate(runs.queries):
        rows = slice(runs.offsets[q], runs.offsets[q + 1])
        pairs = zip(runs.documents[rows], runs.grades[rows].tolist(), strict=True)
        seen = {runs.vocabulary[d]: grade for d, grade in pairs if grade}
        missing = runs.ideal_grades[runs.ideal_offsets[q] : runs.ideal_offsets[q + 1]].tolist()
        for grade in seen.values():
            missing.remove(grade)
        judgments[query] = seen | {f"zz{i}": grade for i, grade in enumerate(missing)}
    return Qrels.from_dict(judgments)


def test_no_two_turns_repeat_the_same_work() -> None:
    task = fusion_bench_task(
        make_aligned_runs(Size("small", 50, 3, 10, 1.3, 40)), list(MEASURES), 2
    )
    values = [scores.values.tobytes() for turn in (0, 40) for scores in scored(task(turn))]
    assert len(values) == 4
    assert len(set(values)) > 2


def scored(result: object) -> tuple[Scores, ...]:
    assert isinstance(result, tuple)
    return result


def test_tables() -> None:
    lines = markdown("Title", ROWS).splitlines()
    assert lines[0] == "**Title**"
    assert lines[2:] == [
        "| size | ranx | one × | one |",
        "|---|---:|---:|---|",
        "| 1 × 2 | 1,234.50 ms | 100× | a |",
        "| 3 × 4 | 0.50 ms | 1,234× | b |",
    ]


def test_a_table_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n")
    replace_between_marks(path, "new \\1\n")
    assert path.read_text() == "before\n<!-- bench -->\nnew \\1\n<!-- /bench -->\nafter\n"
    path.write_text("no marks")
    with pytest.raises(ValueError, match="there once"):
        replace_between_marks(path, "new")


LONG = """text

| list | k | gain |
|:--|--:|--:|
| a, `b` | 1 | \\[+1, 2\\] |
|  | 60 | **no** |
| c | 60 |  |
"""


def test_a_long_table_becomes_a_csv_and_a_short_one(tmp_path: Path) -> None:
    rows = read_rows(LONG, repeated=1)
    assert rows[2] == ["a, `b`", "60", "**no**"]
    assert format_rows(read_rows(LONG)) == LONG.removeprefix("text\n\n").strip()
    assert keep_columns(rows, ["gain", "k"])[3] == ["", "60"]
    assert pivot(rows, ["list"], "k", "gain") == [
        ["list", "1", "60"],
        ["a, `b`", "\\[+1, 2\\]", "**no**"],
        ["c", "–", ""],
    ]
    assert write_csv(tmp_path / "page.md", "gains", rows) == "[All 3 rows as CSV](page-gains.csv)."
    text = (tmp_path / "page-gains.csv").read_text()
    assert text == 'list,k,gain\n"a, b",1,"[+1, 2]"\n"a, b",60,no\nc,60,\n'


def test_pages_of_stored_results_are_what_their_studies_write(tmp_path: Path) -> None:
    for module, options in ((campaigns, []), (choice_rules, [read_results()])):
        page = tmp_path / module.PAGE.name
        shutil.copy(module.PAGE, page)
        module.write_page(*options, page=page, picture=page.with_suffix(".png"))
        assert page.read_text() == module.PAGE.read_text()
        for path in tmp_path.glob("*.csv"):
            assert path.read_text() == (module.PAGE.parent / path.name).read_text()
    assert len([*tmp_path.glob("*.csv")]) == 4


def test_the_table_of_rivals_is_that_of_the_stored_records() -> None:
    rows = read_rows(format_table(json.loads(RESULTS.read_text())), repeated=1)
    docs = ROOT / "docs" / "studies"
    assert encode_csv(rows) == (docs / "tuning-rivals.csv").read_text()
    assert format_rows(summarize_rivals(rows)) in (docs / "tuning.md").read_text()


def test_every_benchmark_has_a_title_and_the_page_has_a_place_for_it() -> None:
    modules = find_benchmarks()
    assert {"engine", "gate", "huge"} <= set(modules)
    assert len({module.TITLE for module in modules.values()}) == len(modules)
    text = (ROOT / "docs/reference/performance.md").read_text(encoding="utf-8")
    assert len(re.findall(r"<!-- bench -->.*?<!-- /bench -->", text, re.DOTALL)) == 1


@pytest.mark.filterwarnings("ignore")  # numba's, about features that ranx uses
@pytest.mark.parametrize("name", sorted(find_benchmarks()))
def test_every_benchmark_runs_at_toy_size(name: str) -> None:
    module = find_benchmarks()[name]
    rows = list(module.rows(1, toy=True))
    assert markdown(module.TITLE, rows).count("\n") == len(rows) + 4
    assert all(value > 0 for row in rows for value in row.values() if isinstance(value, float))


def test_whole_commands_on_deep_lists_are_measured_in_processes_of_their_own() -> None:
    [(title, rows)] = further_tables(toy=True).items()
    assert [row["command"] for row in rows] == ["try", "eval"]
    # The peak has no upper bound here: a process starts with that of the tests that fork it.
    assert all(0 < float(row["CPU s"]) < 60 and float(row["peak GB"]) > 0.03 for row in rows)
    assert title in (ROOT / "docs/reference/performance.md").read_text(encoding="utf-8")


STUDIES = (
    "studies.adr_005",
    "studies.choices",
    "studies.documents",
    "studies.front",
    "studies.front_example",
    "studies.guidance",
    "studies.how_many_queries",
    "studies.hybrid",
    "studies.list_gain",
    "live_replay",
    "python_calls",
    "studies.referee",
    "studies.salts",
    "studies.samplers",
    "scaling",
    "studies.self_test",
    "sweep",
    "studies.thresholds",
    "studies.tuning",
    "studies.types",
)


#: Modules whose parts have tests of their own: all of one takes minutes.
TESTED_ELSEWHERE = {
    "studies.agreement_table",
    "studies.classify_table",
    "studies.judge_sensitivity_table",
    "studies.judging_effort",
    "studies.mutants",
    "studies.prediction_powered_table",
    "studies.printed_blocks",
}


def test_every_module_with_a_command_line_is_tested() -> None:
    folder = ROOT / "benchmarks"
    commands = {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in [*folder.glob("*.py"), *folder.glob("studies/*.py")]
        if "\ndef main(" in path.read_text()
    }
    elsewhere = {"__main__", *TESTED_ELSEWHERE}
    assert commands - elsewhere - find_benchmarks().keys() == set(STUDIES)


@pytest.mark.filterwarnings("ignore")  # numba's, about features that ranx uses
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_runs_at_toy_size(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FUSION_BENCH_PARITY_DATA", raising=False)
    before = {path: path.stat().st_mtime_ns for path in written_files()}
    import_module(f"benchmarks.{name}").main(["--toy"])
    output = capsys.readouterr().out
    assert output.strip()
    assert not re.search(r"\bnan\b", output)
    assert {path: path.stat().st_mtime_ns for path in written_files()} == before


def written_files() -> list[Path]:
    """The files that a full run writes."""
    pictures = (ROOT / "reports" / "pictures").glob("*.png")
    docs = [ROOT / "docs", ROOT / "docs/reference", ROOT / "docs/studies"]
    pages = [path for folder in docs for path in folder.glob("*.*")]
    return [*pages, *(ROOT / "benchmarks").rglob("*.json"), *pictures]


def test_the_command_writes_results_tables_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.startup.TIMES", 1)
    for name in ("docs/reference/performance.md", "benchmarks/results.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    main(["--rounds", "1", "startup"], root=tmp_path)
    groups = json.loads((tmp_path / "benchmarks/results.json").read_text())["groups"]
    assert len(groups["Starting"]) == 3
    page = tmp_path / "docs/reference/performance.md"
    assert "[Starting](performance-starting.csv)" in page.read_text()
    assert len(page.with_name("performance-starting.csv").read_text().splitlines()) == 4
    assert (tmp_path / "reports/pictures/bench.png").exists()


def test_the_area_of_a_front_is_the_mean_gain_over_budgets() -> None:
    points = front().points
    gains = mean_gains(points, least=0.5, held_out=0.49)
    bought = [
        max((p for p in points if p.candidates <= budget), key=lambda p: p.value)
        for budget in range(100)
    ]
    assert gains[0] == pytest.approx(np.mean([point.value - 0.5 for point in bought]))
    assert gains[2] == pytest.approx(np.mean([point.held_out - 0.49 for point in bought]))
    assert gains[1] == pytest.approx((0.057 * np.log10(6) + 0.06 * np.log10(100 / 60)) / 2)
