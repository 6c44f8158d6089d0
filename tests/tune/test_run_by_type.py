"""``tune`` with everything that can be asked for, from files to files."""

import json
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.cli import main
from tests.tune import made

#: By query.
Shares = dict[str, float]


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
    assert "a relevant document?" in page

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


def judged_shares(root: Path, file: str, system: str, judged: set[tuple[str, str]]) -> Shares:
    """The judged share of the first three documents of each query, from the fused lists."""
    out = root / f"{len(list(root.glob('*.trec')))}.trec"
    words = ("fuse", str(root / f"out/{file}.yaml"), "--system", system, "--out", str(out))
    assert run(root, *words) == 0
    shares: Shares = {}
    for line in out.read_text(encoding="utf-8").splitlines():
        query, _, document, rank, *_ = line.split()
        if int(rank) <= 3:
            shares[query] = shares.get(query, 0.0) + ((query, document) in judged) / 3
    return shares


def test_what_is_judged_stands_beside_each_mean(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shares are those of the fused lists; the ends of classes average to those of all queries."""
    qrels = root / "datasets/made/qrels.txt"
    lines = qrels.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if " d3 " in line or line.endswith(" 1\n")]
    qrels.write_text("".join(kept), encoding="utf-8")
    judged = {(line.split()[0], line.split()[2]) for line in kept}
    experiment = root / "experiments/e.yaml"
    text = experiment.read_text(encoding="utf-8")
    text = text.replace("nDCG@10", "nDCG@3") + "  choose: best\n"
    experiment.write_text(text, encoding="utf-8")
    words = ("tune", str(experiment), "--out", str(root / "out"), "--no-plots")
    assert run(root, *words) in {0, 3}
    report = json.loads(capsys.readouterr().out)
    held_out = report["held_out_queries"]
    classes = {
        name: [query for query in held_out if "ab"[int(query[1:]) % 2] == name] for name in "ab"
    }
    parts = {each["type"]: each for each in report["by_type"]}
    systems = {
        "the default": "today",
        "the tuned system": "today tuned",
        "tuned by type": "today tuned by type",
    }
    seen = set()
    for system, name in systems.items():
        whole, shares = report["data"]["bounds"][system], judged_shares(root, "tuned", name, judged)
        assert whole["judged"] == pytest.approx(np.mean([shares[query] for query in held_out]))
        sums = dict.fromkeys(("judged", "low", "high"), 0.0)
        for value, part in parts.items():
            bounds, queries = part["bounds"][system], classes[value]
            assert bounds["judged"] == pytest.approx(np.mean([shares[query] for query in queries]))
            for key in sums:
                sums[key] += bounds[key] * len(queries) / len(held_out)
        assert sums == pytest.approx({key: whole[key] for key in sums})
        assert whole["low"] < whole["high"]
        seen.add(whole["judged"])
    for value, part in parts.items():
        for system, mean in (("the default", "default"), ("the tuned system", "tuned")):
            bounds = part["bounds"][system]
            assert bounds["low"] <= part["gain"][mean] <= bounds["high"], value

    for point in report["front"]["points"]:
        if not point["efficient"]:
            assert point["bounds"] is None
            continue
        depth = point["depth"]
        name = f"today, depth {depth}" if depth else "today, no reranker"
        bounds, shares = point["bounds"], judged_shares(root, "front", name, judged)
        assert bounds["judged"] == pytest.approx(np.mean([shares[query] for query in held_out]))
        assert bounds["low"] <= point["held_out"] <= bounds["high"]
        seen.add(bounds["judged"])
    assert len(seen) > 1, "some rank other documents first"
    page = (root / "out/tuning.md").read_text(encoding="utf-8")
    assert "| Judged@3 | if judged |" in page
    assert "| type b | the default |" in page


def test_a_system_with_numbers_by_type_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root / "experiments" / "e.yaml"
    text = path.read_text(encoding="utf-8")
    typed = text.replace("beta: 0.5", "beta: {by_query_type: {a: 0.1, hybrid: 0.5}}")
    path.write_text(typed, encoding="utf-8")
    assert run(root, "tune", str(path), "--out", str(root / "out")) == 2
    assert "query type already" in capsys.readouterr().out
