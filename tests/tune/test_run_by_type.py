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


def describe(config: dict[str, object]) -> str:
    """A system without its name, and every number as a float."""
    plain = json.loads(json.dumps({**config, "name": ""}), parse_int=float)
    return json.dumps(plain, sort_keys=True)


def test_what_is_judged_stands_beside_each_mean(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shares are those that eval finds for each query; ends enclose the mean of each class."""
    qrels = root / "datasets/made/qrels.txt"
    lines = qrels.read_text(encoding="utf-8").splitlines(keepends=True)
    qrels.write_text("".join(lines[::2] + lines[1::4]), encoding="utf-8")
    experiment = str(root / "experiments/e.yaml")
    assert run(root, "tune", experiment, "--out", str(root / "out"), "--no-plots") in {0, 3}
    report = json.loads(capsys.readouterr().out)
    points = [each for each in report["front"]["points"] if each["efficient"]]
    shares: dict[str, dict[str, float]] = {}
    for file in ("tuned", "front"):
        words = ("eval", str(root / f"out/{file}.yaml"), "--out", str(root / file), "--no-plots")
        assert run(root, *words) == 0
        found = json.loads(capsys.readouterr().out)["collections"][0]
        for row in (row for row in found["systems"] if row["kind"] == "system"):
            by_query = dict(zip(found["queries"], row["judged_shares"], strict=True))
            shares[row["name"]] = shares[describe(row["config"])] = by_query

    held_out = report["held_out_queries"]
    names = {
        "the default": "today",
        "the tuned system": "today tuned",
        "tuned by type": "today tuned by type",
    }
    classes = {
        name: [query for query in held_out if "ab"[int(query[1:]) % 2] == name] for name in "ab"
    }
    parts = {each["type"]: each for each in report["by_type"]}
    for system, row in names.items():
        whole = report["data"]["bounds"][system]
        assert whole["judged"] == pytest.approx(np.mean([shares[row][q] for q in held_out]))
        sums = dict.fromkeys(("judged", "low", "high"), 0.0)
        for name, part in parts.items():
            bounds = part["bounds"][system]
            expected = np.mean([shares[row][query] for query in classes[name]])
            assert bounds["judged"] == pytest.approx(expected)
            for key in sums:
                sums[key] += bounds[key] * len(classes[name])
        for key, value in sums.items():
            assert whole[key] == pytest.approx(value / len(held_out))
        assert whole["low"] < whole["high"]
    for name, part in parts.items():
        for system, mean in (("the default", "default"), ("the tuned system", "tuned")):
            bounds = part["bounds"][system]
            assert bounds["low"] <= part["gain"][mean] <= bounds["high"], name

    for point in points:
        bounds, column = point["bounds"], shares[describe(point["config"])]
        assert bounds["low"] <= point["held_out"] <= bounds["high"]
        assert bounds["judged"] == pytest.approx(np.mean([column[q] for q in held_out]))
    page = (root / "out/tuning.md").read_text(encoding="utf-8")
    assert "| held-out queries | system | Judged@10 | if judged |" in page
    assert "| type b | the default |" in page


def test_a_system_with_numbers_by_type_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "experiments" / "e.yaml"
    text = path.read_text(encoding="utf-8")
    typed = text.replace("beta: 0.5", "beta: {by_query_type: {a: 0.1, hybrid: 0.5}}")
    path.write_text(typed, encoding="utf-8")
    assert run(root, "tune", str(path), "--out", str(root / "out")) == 2
    assert "has numbers by query type already" in capsys.readouterr().out
