"""``fusion-bench try``, as a user runs it."""

import json
from pathlib import Path

import pytest
import yaml

from fusion_bench.cli import main
from tests import tiny
from tests.commands import next_commands

Capture = pytest.CaptureFixture[str]
LISTS = ["--qrels", "qrels.txt", "a=a.trec", "b=b.trec"]
RERANK = ["--rerank", "r=r.trec"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tiny.make(tmp_path) / "datasets/tiny"
    monkeypatch.chdir(place)
    return place


def run_json(capsys: Capture, *arguments: str) -> dict[str, object]:
    assert main(["try", *arguments, "--no-plots", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return dict(json.loads(out))


def systems_of(report: object) -> dict[str, dict[str, object]]:
    assert isinstance(report, dict)
    (collection,) = report["collections"]
    return {row["name"]: row["config"] for row in collection["systems"] if row["config"]}


def test_rerankers_are_in_the_table_and_in_the_next_command(folder: Path, capsys: Capture) -> None:
    assert main(["try", *LISTS, *RERANK, "--plots", "-v"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("note: rrf v2 is ")
    lines = [line for line in out.splitlines() if line]
    for name in ("a", "b replace", "rrf v1", "raw scores bands", "min-max", "z-score linear 0.7"):
        assert any(line.lstrip("★ ").startswith(f"{name}  ") for line in lines), name
    given = ["try", *LISTS, *RERANK]
    asked = [*given, "--role", "a=question"]
    assert next_commands(out) == [[*given, "--save", "mine"], asked]
    assert main(["try", *asked[1:], "--no-plots"]) == 0
    out, err = capsys.readouterr()
    assert err.endswith("rrf v2 counts it ×2.\n")
    assert next_commands(out) == [[*asked, "--save", "mine"]]
    assert len(list((folder / "reports/try").glob("*.png"))) == 1


@pytest.mark.usefixtures("folder")
def test_a_short_summary_in_markdown(capsys: Capture) -> None:
    assert main(["try", *LISTS, "--no-plots", "--markdown", "-", "--save", "mine"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert "rrf v1" in lines[2]
    assert any(line.startswith(("| **rrf v1**", "| **★ rrf v1**")) for line in lines)


@pytest.mark.usefixtures("folder")
def test_json_has_the_report_and_what_was_guessed(capsys: Capture) -> None:
    found = run_json(capsys, *LISTS, *RERANK, "--measure", "RR@10")
    assert isinstance(found["notes"], list)
    assert any("unit, guessed" in note for note in found["notes"])
    assert len(systems_of(found["report"])) == 24


@pytest.mark.usefixtures("folder")
def test_systems_that_an_engine_cannot_express_are_left_out_and_counted(capsys: Capture) -> None:
    found = run_json(capsys, *LISTS, *RERANK, "--engine", "elasticsearch")
    kept = systems_of(found["report"])
    assert {"a", "b", "rrf v1", "min-max"} <= set(kept)
    assert not any("replace" in name or "z-score" in name for name in kept)
    assert isinstance(found["notes"], list)
    assert f"{24 - len(kept)} of 24" in found["notes"][0]
    assert main(["try", *LISTS, "--engine", "azure", "--no-plots"]) == 2
    assert "rrf" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_score_space_can_be_given(capsys: Capture) -> None:
    found = run_json(capsys, *LISTS, "--rerank", "r:order=r.trec")
    assert not any("guessed" in note for note in found["notes"])  # type: ignore[attr-defined]
    assert main(["try", *LISTS, "--rerank", "r:log_prob=r.trec"]) == 2
    assert "r.trec:1: rerank score 0.9 " in capsys.readouterr().err


def test_saved_files_run_as_they_are(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = run_json(capsys, *LISTS, *RERANK, "--save", "mine")
    saved = folder / "mine"
    assert yaml.safe_load((saved / "dataset.yaml").read_text()) == {
        "name": "tiny",
        "qrels": "qrels.txt",
        "runs": {"a": {"path": "runs/a.trec"}, "b": {"path": "runs/b.trec"}},
        "rerank": {"r": {"path": "rerank/r.trec", "score_space": "unit"}},
    }
    monkeypatch.chdir(saved)
    assert main(["eval", "experiment.yaml", "--no-plots", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    first = tried["report"]["collections"][0]  # type: ignore[index]
    assert [row["measures"] for row in report["collections"][0]["systems"]] == [
        row["measures"] for row in first["systems"]
    ]
    assert main(["gate", "experiment.yaml", "--update", "--reason", "first"]) == 0
    assert main(["gate", "experiment.yaml"]) == 0


def test_a_question_is_saved_and_rrf_v2_runs_at_once(folder: Path, capsys: Capture) -> None:
    (folder / "dataset.yaml").unlink()
    lists = ["--qrels", "qrels.txt", "a=a.trec", "question=b.trec"]
    tried = run_json(capsys, *lists, "--save", "mine")
    assert "rrf v2" in systems_of(tried["report"])
    saved = yaml.safe_load((folder / "mine/dataset.yaml").read_text(encoding="utf-8"))
    assert saved["runs"]["question"]["roles"] == ["question"]
    experiment = yaml.safe_load((folder / "mine/experiment.yaml").read_text(encoding="utf-8"))
    assert experiment["systems"]["rrf v2"]["fusion"]["bonus"] == {1: 0.05, 3: 0.02}
    assert experiment["gate"]["checks"] == {"nDCG@10": {"max_drop": "auto"}}
    assert main(["eval", "mine", "--no-plots", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["collections"][0]["systems"]
    expected = tried["report"]["collections"][0]["systems"]  # type: ignore[index]
    assert [row["measures"] for row in rows] == [row["measures"] for row in expected]
    run_json(capsys, *LISTS, "--role", "b=question,semantic", "--save", "other")
    saved = yaml.safe_load((folder / "other/dataset.yaml").read_text(encoding="utf-8"))
    assert saved["runs"]["b"]["roles"] == ["question", "semantic"]


def test_a_role_beside_a_dataset_is_not_saved(folder: Path, capsys: Capture) -> None:
    run_json(capsys, *LISTS, "--save", "mine")
    role = ("--dataset", "mine", "--role", "b=question")
    assert "rrf v2" in systems_of(run_json(capsys, *role)["report"])
    assert main(["try", *role, "--save", "again"]) == 2
    message = capsys.readouterr().err
    assert "mine/dataset.yaml" in message
    assert "'roles: [question]'" in message
    assert not (folder / "again").exists()


def test_a_datasets_lists_are_tried_where_they_are(folder: Path, capsys: Capture) -> None:
    tried = run_json(capsys, *LISTS, *RERANK, "--save", "mine")
    again = run_json(capsys, "--dataset", "mine", "--save", "again")
    assert systems_of(again["report"]) == systems_of(tried["report"])
    assert [path.name for path in (folder / "again").iterdir()] == ["experiment.yaml"]
    assert main(["eval", "again", "--no-plots"]) == 0
    capsys.readouterr()
    assert main(["try", "--dataset", "mine", *LISTS]) == 2
    assert "--dataset" in capsys.readouterr().err


def test_without_judgments_the_experiment_is_written(folder: Path, capsys: Capture) -> None:
    run_json(capsys, *LISTS, "--save", "mine")
    path = folder / "mine/dataset.yaml"
    data = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({key: data[key] for key in data if key != "qrels"}))
    assert main(["try", "--dataset", "mine"]) == 2
    assert "--save" in capsys.readouterr().err
    assert main(["try", "--dataset", "mine", "--save", "again"]) == 0
    assert "fusion-bench judge mine" in capsys.readouterr().out
    assert "min-max" in yaml.safe_load((folder / "again/experiment.yaml").read_text())["systems"]
    assert main(["lint", "again"]) == 0


def test_queries_bring_types_groups_and_splits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    known = run_json(capsys, *LISTS, "--queries", "queries.jsonl", "--save", "mine")
    [collection] = known["report"]["collections"]  # type: ignore[index]
    assert (collection["split"], collection["queries"]) == ("test", ["q1", "q2", "q4"])
    assert collection["types"] == ["local", "global", "local"]
    assert yaml.safe_load((folder / "mine/dataset.yaml").read_text())["queries"] == "queries.jsonl"
    (folder / "others.jsonl").write_text('{"id": "q01"}')
    assert main(["try", *LISTS, "--queries", "others.jsonl", "--no-plots"]) == 2
    assert "query in common" in capsys.readouterr().err
    monkeypatch.chdir(folder / "mine")
    assert main(["eval", "experiment.yaml", "--no-plots"]) == 0


def test_nothing_is_overwritten(folder: Path, capsys: Capture) -> None:
    assert main(["try", *LISTS, "--no-plots", "--save", "."]) == 2
    assert "dataset.yaml exists" in capsys.readouterr().err
    assert not (folder / "reports").exists()


def test_files_inside_the_folder_are_not_copied(folder: Path, capsys: Capture) -> None:
    (folder / "dataset.yaml").unlink()
    run_json(capsys, *LISTS, "--save", ".")
    assert yaml.safe_load((folder / "dataset.yaml").read_text())["runs"]["a"] == {"path": "a.trec"}
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--qrels", "qrels.txt", "a=a.trec"],
            "at least two lists",
        ),
        (["--qrels", "qrels.txt", "a=a.trec", "a=b.trec"], "'a' appears twice"),
        (["--qrels", "qrels.txt", "a=a.trec", "=b.trec"], "is not NAME=FILE"),
        (["--qrels", "qrels.txt", "a=a.trec", "b="], "'b=' is not NAME=FILE"),
        (["--qrels", "qrels.txt", "a=a.trec", "../b=b.trec"], "'../b' cannot name a list"),
        (["--qrels", "none.txt", "a=a.trec", "b=b.trec"], "none.txt"),
        (["--qrels", "qrels.txt", "a=a.trec", "b=none.trec"], "none.trec"),
        (["a=a.trec", "b=b.trec"], "judge DIR' reads"),
        ([*LISTS, "--rerank", "r:unitt=r.trec"], "did you mean 'unit'"),
        ([*LISTS, "--rerank", "a=r.trec"], "'a' names both"),
        ([*LISTS, "--measure", "nope"], "nope"),
        ([*LISTS, "--out", "a.trec"], "replace an input"),
        ([*LISTS, "--qrels-columns", "query"], "'query' is not ROLE=NAME"),
        ([*LISTS, "--qrels-columns", "score=x"], "unknown role 'score'"),
        ([*LISTS, "--run-columns", "score=x", "--run-columns", "score=y"], "'score' appears twice"),
        ([*LISTS, "--run-columns", "c:score=x"], "unknown list 'c'"),
        ([*LISTS, "--run-columns", "a:score"], "'score' is not ROLE=NAME"),
        (["--qrels", "none", "a=x", "b=y", "--measure", "ndgc@10"], "'nDCG@10'"),
        ([*LISTS, "--save", "a.trec/mine"], "--save: a.trec/mine would"),
        (
            ["--qrels", "qrels.txt", "a=a.trec", "A=b.trec", "--save", "mine"],
            "case does not count",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["try", *arguments, "--no-plots"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_columns_of_other_names_are_named_by_options(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (folder / "sheet.csv").write_text("search term;url;stars\nq1;d1;1\nq2;d3;2.0\n")
    lists = ["--qrels", "sheet.csv", "a=a.trec", "b=b.trec"]
    assert main(["try", *lists, "--no-plots"]) == 2
    hint = capsys.readouterr().err
    assert all(part in hint for part in ("'query=search term'", "document=url"))
    columns = {"query": "search term", "document": "url", "grade": "stars"}
    options = [f"--qrels-columns={role}={name}" for role, name in columns.items()]
    assert main(["try", *lists, *options, "--no-plots", "--save", "mine"]) == 0
    capsys.readouterr()
    saved = yaml.safe_load((folder / "mine/dataset.yaml").read_text())
    assert saved["qrels"] == {"path": "qrels.csv", "columns": columns}
    assert main(["compare", "--qrels", "sheet.csv", *options, "a.trec", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["collections"][0]["queries"] == ["q1", "q2"]
    monkeypatch.chdir(folder / "mine")
    assert main(["eval", "experiment.yaml", "--no-plots"]) == 0


def test_columns_of_one_list_alone(folder: Path, capsys: Capture) -> None:
    rows = (folder / "a.trec").read_text(encoding="utf-8").split("\n")
    cells = [
        (query, point, score)
        for query, _, point, _, score, *_ in map(str.split, filter(None, rows))
    ]
    lines = [
        json.dumps(dict(zip(("query", "point", "similarity"), row, strict=True))) for row in cells
    ]
    (folder / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    lists = ("--qrels", "qrels.txt", "a=a.jsonl", "b=b.trec")
    column = ("--run-columns", "a:document=point")
    result = run_json(capsys, *lists, *column, "--save", "mine")
    assert result["verdict"] == run_json(capsys, *LISTS)["verdict"]
    saved = yaml.safe_load((folder / "mine/dataset.yaml").read_text(encoding="utf-8"))
    assert saved["runs"]["a"]["columns"] == {"document": "point"}
    assert "columns" not in saved["runs"]["b"]
