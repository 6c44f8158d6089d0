"""``fusion-bench threshold`` from the command line, and ``fb.threshold``."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import fusion_bench as fb
from fusion_bench.cli import main
from tests.threshold_project import EXPERIMENT, make_project

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_project(tmp_path))
    return tmp_path


def test_the_answer_the_promise_and_the_files(project: Path, capsys: Capture) -> None:
    assert main(["threshold", EXPERIMENT]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("rerank top of reranked can ")
    assert "mine: at 10 % " in text
    assert " of plain cannot: " in text
    assert "the lists know" in text
    assert "at most 10 % of unanswerable" in text
    folder = project / "reports/mine"
    record = json.loads((folder / "threshold.json").read_text("utf-8"))
    assert record["collections"][0]["chosen"]["signal"] == "rerank top"
    assert "threshold-mine.png" in (folder / "threshold.md").read_text("utf-8")
    assert (folder / "threshold-mine.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_record_that_is_written(project: Path, capsys: Capture) -> None:
    assert main(["threshold", EXPERIMENT, "--json", "--signal", "rerank top"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    assert printed["collections"][0]["chosen"]["is_stated"] is True


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--signal", "rr"), "'rr' (known: agreement, fused margin"),
        (("--false-answers", "0.01"), "answers needs 299"),
        (("--false-answers", "1.5"), "below 1, not 1.5"),
        (("--system", "other"), "unknown system 'other'"),
    ],
)
def test_what_cannot_be_asked(capsys: Capture, options: tuple[str, ...], problem: str) -> None:
    assert main(["threshold", EXPERIMENT, *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_signal_of_ones_own_in_python() -> None:
    report = fb.threshold(
        EXPERIMENT, signals={"candidates": lambda runs: np.diff(runs.offsets)}, systems=["plain"]
    )
    labels = [each.label for each in report.collections[0].signals]
    assert labels[-1] == "candidates"
    assert not any("reranked" in label for label in labels)


def save(*options: str, file: str = "experiments/careful.yaml") -> dict[str, Any]:
    assert main(["threshold", EXPERIMENT, "--save", file, *options]) == 0
    saved: dict[str, Any] = yaml.safe_load(Path(file).read_text("utf-8"))
    return saved


def test_the_promised_threshold_is_saved_in_its_system(project: Path) -> None:
    saved = save()
    record = json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    chosen = record["collections"][0]["chosen"]
    assert saved["systems"]["reranked"].pop("abstain") == {
        "signal": "rerank top",
        "above": chosen["threshold"],
        "promised_false_answers": 0.1,
        "calibrated_on": chosen["calibrated_on"],
    }
    assert saved == yaml.safe_load(Path(EXPERIMENT).read_text("utf-8"))


def test_a_system_names_its_signal_and_its_share(project: Path) -> None:
    text = Path(EXPERIMENT).read_text("utf-8").replace("missing: below}}", "missing: below}, ABST}")
    abstain = 'abstain: {signal: "rerank top", false_answers: 0.05}'
    Path(EXPERIMENT).write_text(text.replace("ABST", abstain), encoding="utf-8")
    saved = save()["systems"]["reranked"]["abstain"]
    record = json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    assert record["settings"]["false_answers"] == saved["promised_false_answers"] == 0.05
    chosen = record["collections"][0]["chosen"]
    assert (chosen["is_stated"], chosen["calibrating"]) == (True, 90)
    assert "false_answers" not in saved


def test_among_limits_the_choice(project: Path) -> None:
    text = Path(EXPERIMENT).read_text("utf-8").replace("missing: below}}", "missing: below}, ABST}")
    abstain = "abstain: {signal: any, among: [agreement, 'top:a'], false_answers: 0.2}"
    Path(EXPERIMENT).write_text(text.replace("ABST", abstain), encoding="utf-8")
    saved = save()["systems"]["reranked"]["abstain"]
    record = json.loads((project / "reports/mine/threshold.json").read_text("utf-8"))
    [collection] = record["collections"]
    assert {each["signal"] for each in collection["signals"]} == {"agreement", "top:a"}
    assert saved["signal"] == collection["chosen"]["signal"] == "top:a"
    assert collection["chosen"]["against"]["signal"] == "agreement"


@pytest.mark.parametrize("own", ["", "split: test\n"])
def test_the_split_that_set_the_threshold_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, own: str
) -> None:
    root = make_project(tmp_path / "split", answerable=160, unanswerable=160, splits=True)
    monkeypatch.chdir(root)
    Path(EXPERIMENT).write_text(Path(EXPERIMENT).read_text("utf-8") + own, encoding="utf-8")
    saved = save("--set", "split=dev", "--set", "seed=3", "--signal", "rerank top")
    assert (saved.get("split"), saved["seed"]) == ("test" if own else None, 3)
    printed = " ".join(capsys.readouterr().out.split())
    assert "careful.yaml, without --set split=dev" in printed
    assert "eval experiments/careful.yaml" in printed
    assert main(["eval", "experiments/careful.yaml", "--allow-suspect"]) == 0
    report = json.loads((root / "reports/careful/report.json").read_text("utf-8"))
    assert report["collections"][0]["split"] == "test"
    assert report["collections"][0]["systems"][1]["abstain"]["is_calibrated_here"] is False


def test_a_path_of_a_dataset_is_right_in_another_folder(capsys: Capture) -> None:
    text = Path(EXPERIMENT).read_text("utf-8")
    path = "dataset: ../datasets/mine/dataset.yaml"
    looks = "tune: {system: plain, looks: {file: looks.jsonl}}"
    Path(EXPERIMENT).write_text(f"{text.replace('dataset: mine', path)}{looks}\n", "utf-8")
    Path("other/place").mkdir(parents=True)
    saved = save(file="other/place/careful.yaml")
    assert saved["dataset"] == "../../datasets/mine/dataset.yaml"
    assert saved["tune"]["looks"]["file"] == "../../experiments/looks.jsonl"
    assert main(["lint", "other/place/careful.yaml"]) == 0
    assert "eval other/place/careful.yaml" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--mask",), "queries are masked"),
        (("--false-answers", "0.04"), "signal takes half"),
        (("--signal", "fused margin", "--save", EXPERIMENT), "replace an input"),
    ],
)
def test_what_cannot_be_saved(capsys: Capture, options: tuple[str, ...], problem: str) -> None:
    assert main(["threshold", EXPERIMENT, "--save", "experiments/new.yaml", *options]) == 2
    assert problem in capsys.readouterr().err
    assert not Path("experiments/new.yaml").exists()


def test_two_systems_that_state_a_signal_are_told_apart(capsys: Capture) -> None:
    text = Path(EXPERIMENT).read_text("utf-8").replace("b]}", "b], ABST}")
    text = text.replace("missing: below}}", "missing: below}, ABST}")
    abstain = 'abstain: {signal: "top:a", false_answers: 0.2}'
    Path(EXPERIMENT).write_text(text.replace("ABST", abstain), encoding="utf-8")
    assert main(["threshold", EXPERIMENT]) == 2
    assert "plain, reranked have 'abstain'" in capsys.readouterr().err
    assert main(["threshold", EXPERIMENT, "--system", "plain", "--false-answers", "0.1"]) == 2
    assert "false_answers 0.2, given 0.1" in capsys.readouterr().err
    assert save("--system", "plain")["systems"]["plain"]["abstain"]["signal"] == "top:a"


def test_explain_prints_whether_the_query_is_answered(capsys: Capture) -> None:
    saved = save()["systems"]["reranked"]["abstain"]
    command = ["explain", "experiments/careful.yaml", "q3", "--system", "reranked"]
    capsys.readouterr()
    assert main(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert main([*command, "--json"]) == 0
    decision = json.loads(capsys.readouterr().out)[0]["abstain"]
    assert (decision["signal"], decision["above"]) == ("rerank top", saved["above"])
    assert decision["answered"] is (decision["value"] > saved["above"]) is True
    line = f"answered: rerank top {decision['value']:.6g} is above {saved['above']:.6g}"
    assert f"{line} " in text
    assert f"not {line}" not in text


def test_eval_prints_the_share_of_answered_queries(project: Path, capsys: Capture) -> None:
    abstain = save()["systems"]["reranked"]["abstain"]
    capsys.readouterr()
    assert main(["eval", "experiments/careful.yaml", "--verbose", "--allow-suspect"]) == 0
    text = capsys.readouterr().out
    record = json.loads((project / "reports/careful/report.json").read_text("utf-8"))
    [collection] = record["collections"]
    plain, reranked = (
        next(row for row in collection["systems"] if row["name"] == name)
        for name in ("plain", "reranked")
    )
    assert plain["abstain"] is None
    result = reranked["abstain"]
    assert (result["signal"], result["above"]) == ("rerank top", abstain["above"])
    assert (result["answered"]["queries"], result["false_answers"]["queries"]) == (90, 90)
    assert result["is_calibrated_here"]
    assert result["answered"]["share"] > 0.8 > 0.1 > result["false_answers"]["share"]
    assert "false answers" in text
    assert "set the threshold" in " ".join(text.split())
    # The measures are those of the whole lists, over the judged queries.
    assert main(["eval", EXPERIMENT, "--allow-suspect"]) == 0
    before = json.loads((project / "reports/mine/report.json").read_text("utf-8"))
    assert [row["measures"] for row in collection["systems"]] == [
        row["measures"] for row in before["collections"][0]["systems"]
    ]


def test_eval_has_no_share_of_false_answers_without_such_queries(project: Path) -> None:
    queries = project / "datasets/mine/queries.jsonl"
    queries.write_text(queries.read_text("utf-8").replace(', "answerable": false', ""), "utf-8")
    text = Path(EXPERIMENT).read_text("utf-8").replace("b]}", 'b], abstain: {signal: "top:a", X}}')
    Path(EXPERIMENT).write_text(text.replace("X", "above: 2.5"), encoding="utf-8")
    assert main(["eval", EXPERIMENT, "--allow-suspect"]) == 0
    record = json.loads((project / "reports/mine/report.json").read_text("utf-8"))
    result = record["collections"][0]["systems"][0]["abstain"]
    scores = [
        max(float(line.split()[4]) for line in rows)
        for rows in by_query(project / "datasets/mine/a.trec", answerable=90).values()
    ]
    assert result["answered"]["share"] == sum(score > 2.5 for score in scores) / 90
    assert (result["false_answers"]["share"], result["false_answers"]["queries"]) == (None, 0)


def test_eval_prints_that_there_is_no_threshold_yet(capsys: Capture) -> None:
    text = Path(EXPERIMENT).read_text("utf-8")
    abstain = 'b], abstain: {signal: "top:a", false_answers: 0.1}}'
    Path(EXPERIMENT).write_text(text.replace("b]}", abstain), encoding="utf-8")
    assert main(["eval", EXPERIMENT, "--allow-suspect"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("plain: 'abstain' has no") == 1


def test_eval_warns_of_a_signal_with_one_value_for_many_queries(
    project: Path, capsys: Capture
) -> None:
    text = Path(EXPERIMENT).read_text("utf-8")
    abstain = 'b], abstain: {signal: "fused top", above: 0.03}}'
    Path(EXPERIMENT).write_text(text.replace("b]}", abstain), encoding="utf-8")
    assert main(["eval", EXPERIMENT, "--verbose", "--allow-suspect"]) == 0
    warning = "plain: 100.0 % of the queries "
    assert warning in " ".join(capsys.readouterr().out.split())
    record = json.loads((project / "reports/mine/report.json").read_text("utf-8"))
    assert record["collections"][0]["systems"][0]["abstain"]["values"] == 1


def by_query(path: Path, *, answerable: int) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {f"q{n}": [] for n in range(answerable)}
    for line in path.read_text("utf-8").splitlines():
        rows.get(line.split()[0], []).append(line)
    return rows


def export(engine: str, signal: str = "fused top", fusion: str = "rrf", above: float = 0.03) -> int:
    Path("experiments/engine.yaml").write_text(
        "dataset: mine\nbaseline: s\nsystems:\n"
        f"  s: {{runs: [a, b], fusion: {fusion}, depth: 10, top_k: 10, "
        f"abstain: {{signal: '{signal}', above: {above}}}}}\n",
        encoding="utf-8",
    )
    command = ["export", "experiments/engine.yaml", "--to", engine, "--vector", "b", "--no-replay"]
    return int(main(command))


@pytest.mark.parametrize(
    ("engine", "factor", "line"),
    [
        ("elasticsearch", 1.0, '"min_score": {}'),
        ("opensearch", 0.5, '"min_score": {}'),  # its weights add up to 1
        ("qdrant", 1.0, '"score_threshold": {}'),
        ("vespa", 1.0, "rank-score-drop-limit: {}"),
    ],
)
def test_an_engine_gets_the_threshold_in_its_own_scores(
    capsys: Capture, engine: str, factor: float, line: str
) -> None:
    weights = "{method: rrf, k: 60, weights: {a: 0.8, b: 1.2}}" if engine == "opensearch" else "rrf"
    assert export(engine, fusion=weights) == 0
    captured = capsys.readouterr()
    text = captured.out + captured.err
    pattern = line.format(r"([\d.]+)")
    [limit] = re.findall(pattern, text)
    assert float(limit) == pytest.approx(0.03 * factor, rel=1e-6)
    assert float(limit) > 0.03 * factor
    assert "No document is" in " ".join(text.split())


@pytest.mark.parametrize(
    ("engine", "signal", "reason"),
    [
        ("weaviate", "fused top", "Weaviate has no minimum"),
        ("qdrant", "top:a", "minimum score drops documents"),
        ("weaviate", "top:a", "query by top:a"),
    ],
)
def test_what_an_engine_cannot_compare_is_left_to_the_application(
    capsys: Capture, engine: str, signal: str, reason: str
) -> None:
    assert export(engine, signal) == 0
    captured = capsys.readouterr()
    text = " ".join((captured.out + captured.err).split())
    assert reason in text
    assert f": compare {signal} with 0.03 in the application" in text
    assert 'score_threshold":' not in text


def test_scores_that_are_no_multiple_are_left_to_the_application(capsys: Capture) -> None:
    assert export("qdrant", fusion="{method: rrf, weights: {a: 1, b: 3}}") == 0
    captured = capsys.readouterr()
    text = " ".join((captured.out + captured.err).split())
    assert "no multiple of ours" in text


def test_a_threshold_that_is_not_known_is_not_exported(capsys: Capture) -> None:
    changed = EXPERIMENT.replace("mine", "open")
    text = Path(EXPERIMENT).read_text("utf-8")
    abstain = 'b], abstain: {signal: "fused top", false_answers: 0.1}}'
    Path(changed).write_text(text.replace("b]}", abstain), encoding="utf-8")
    assert main(["export", changed, "--system", "plain", "--to", "qdrant"]) == 2
    assert "abstain has no" in capsys.readouterr().err
