"""``tune`` with everything that can be asked for, from files to files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.cli import main
from tests.tune import made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made.make(tmp_path)


def run(root: Path, *command: str) -> int:
    return main([*command, "--datasets", str(root / "datasets"), "--json"])


def test_all_of_it_is_found_judged_and_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = root / "out"
    with (root / "experiments" / "e.yaml").open("a", encoding="utf-8") as file:
        file.write("crag: {top: 2}\n")
    asked = ("tune", str(root / "experiments" / "e.yaml"), "--out", str(out), "--no-plots")
    assert run(root, *asked) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["folds"]) == 2
    assert [one["type"] for one in report["by_type"]] == ["a", "b"]
    assert set(report["per_type"]["params"]) == {"a", "b"}
    lists = [(each["name"], each["kind"], each["top"]) for each in report["thresholds"]]
    assert lists == [("today", "system", 3), ("sharp", "list", 3)]
    point = report["front"]["points"][1]
    assert point["cost"] == pytest.approx(2.0 * point["candidates"])
    assert point["cost"] > 0
    assert (out / "trials-front.jsonl").exists()
    page = (out / "tuning.md").read_text(encoding="utf-8")
    assert "Is there a relevant document?" in page

    again = ("eval", str(out / "tuned.yaml"), "--out", str(root / "again"), "--no-plots")
    assert run(root, *again) == 0
    found = json.loads(capsys.readouterr().out)["collections"][0]
    assert {each["top"] for each in found["crag"]} == {2}
    rows = {row["name"]: row["measures"]["nDCG@10"] for row in found["systems"]}
    assert {"today", "today tuned", "today tuned by type"} <= set(rows)
    held_out = [found["queries"].index(query) for query in report["held_out_queries"]]
    values = {name: np.array(rows[name]["values"])[held_out] for name in rows}
    tuned = values["today tuned"] - values["today"]
    assert tuned.mean() == pytest.approx(report["held_out"]["difference"])
    typed = values["today tuned by type"] - values["today tuned"]
    assert typed.mean() == pytest.approx(report["per_type"]["over_global"]["difference"])


def test_a_system_with_numbers_by_type_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "experiments" / "e.yaml"
    text = path.read_text(encoding="utf-8")
    typed = text.replace("beta: 0.5", "beta: {by_query_type: {a: 0.1, hybrid: 0.5}}")
    path.write_text(typed, encoding="utf-8")
    assert run(root, "tune", str(path), "--out", str(root / "out")) == 2
    assert "has numbers by query type already" in capsys.readouterr().out
