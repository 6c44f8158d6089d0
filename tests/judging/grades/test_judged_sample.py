"""From a drawn sample to an estimate: people judge its queries alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.gate import cases
from tests.judging.grades.judged_project import ESTIMATE, replace_in_dataset

Capture = pytest.CaptureFixture[str]
JUDGE = ["judge", cases.EXPERIMENT, "--judge", "people"]


def test_people_judge_what_was_drawn_and_the_estimate_reads_it(
    project: Path, capsys: Capture
) -> None:
    sample = ["grades", "sample", cases.EXPERIMENT, "--machine", "llm", "--n", "12"]
    assert main(sample) == 0
    drawn = capsys.readouterr().out
    (project / "sample.txt").write_text(f"\n{drawn}\n", encoding="utf-8")

    assert main([*JUDGE, "--queries", "sample.txt", "--export", "sheet.csv"]) == 0
    sheet = project / "sheet.csv"
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert {row["query"] for row in rows} == set(drawn.split())
    for row in rows:
        row["grade"] = "1" if row["document"] == f"d{row['query'][1:]}" else "0"
    assert sum(row["grade"] == "1" for row in rows) == 12  # though the judgments hold them
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert main([*JUDGE, "--import", "sheet.csv"]) == 0
    replace_in_dataset(project, "people: {path: people.txt", "people: {path: judgments/people.csv")
    capsys.readouterr()

    assert main([*ESTIMATE, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["people_queries"], record["queries"]) == (12, cases.QUERIES)
    assert record["unjudged"]["people"] == {"plain": 0, "live": 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "no query: name"), ("q1\nq999\n", "document for 1 query")],
)
def test_queries_that_cannot_be_judged_are_refused(
    text: str, message: str, project: Path, capsys: Capture
) -> None:
    (project / "sample.txt").write_text(text, encoding="utf-8")

    assert main([*JUDGE, "--queries", "sample.txt", "--list"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("others", [["--next", "5"], ["--write-qrels", "all.txt"]])
def test_options_that_sample_nothing_are_refused(
    others: list[str], project: Path, capsys: Capture
) -> None:
    (project / "sample.txt").write_text("q1\n", encoding="utf-8")

    assert main([*JUDGE, "--queries", "sample.txt", *others]) == 2
    assert "--queries" in capsys.readouterr().err
    assert main([*JUDGE, "--queries", "missing.txt", "--list"]) == 2
    assert "missing.txt" in capsys.readouterr().err
