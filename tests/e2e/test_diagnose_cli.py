"""``fusion-bench diagnose`` from the command line."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.evaluation.failures import KINDS
from tests.commands import leaf_commands, next_commands
from tests.diagnose_cases import EXPERIMENT, make_project
from tests.shipped_schemas import check_record
from tests.tiny import edit

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make_project(tmp_path))
    return tmp_path


def run(capsys: Capture, *arguments: str) -> str:
    assert main(["diagnose", EXPERIMENT, *arguments]) == 0
    return capsys.readouterr().out


def next_command(text: str) -> list[str]:
    [words] = next_commands(text)
    return words


def test_the_record_satisfies_its_schema_and_is_written(project: Path, capsys: Capture) -> None:
    text = run(capsys, "--json", "--top", "1")
    check_record("diagnosis", text)
    folder = project / "reports/mine"
    assert json.loads((folder / "diagnosis.json").read_text(encoding="utf-8")) == json.loads(text)
    assert (folder / "diagnosis.md").read_text(encoding="utf-8").startswith("# Diagnosis: mine")
    counts = json.loads(text)["collections"][0]["systems"][2]["counts"]
    assert [(count["kind"], len(count["worst"])) for count in counts] == [
        ("dilution", 1),
        ("burial", 1),
        ("miss", 1),
        ("inversion", 0),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_command_explains_the_worst_failure(kind: str, capsys: Capture) -> None:
    words = next_command(run(capsys, "--kind", kind))
    assert words[0] == "explain"
    assert main(words) == 0


def test_the_next_command_keeps_the_options(project: Path, capsys: Capture) -> None:
    edit(project, EXPERIMENT, "dataset: mine", "datasets: [mine, ../datasets/mine/dataset.yaml]")
    options = ["--dataset", "mine", "--datasets", "datasets", "--set", "baseline=question"]
    words = next_command(run(capsys, *options))
    assert {*options} <= {*words}
    assert main(words) == 0


def test_a_query_that_begins_with_a_dash_can_be_explained(project: Path, capsys: Capture) -> None:
    for name in ("qrels.txt", "queries.jsonl", "dense.trec", "bm25.trec", "r.trec"):
        path = project / "datasets/mine" / name
        path.write_text(path.read_text(encoding="utf-8").replace("q4", "-q4"), encoding="utf-8")
    words = next_command(run(capsys))
    assert words[-4:] == ["--", EXPERIMENT, "-q4", "a"]
    assert main(words) == 0


def test_where_nothing_fails_nothing_follows(project: Path, capsys: Capture) -> None:
    edit(project, "datasets/mine/qrels.txt", "q5 0 z 1\n", "")
    text = run(capsys, "--system", "question", "--set", "baseline=question")
    assert "Next:" not in text
    assert "0 of 4" in text


def test_the_option_knows_every_kind() -> None:
    [listed] = [each for each in leaf_commands()["diagnose"].params if "--kind" in each.opts]
    assert tuple(map(str, listed.type_descriptor.annotation)) == KINDS


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--system", "plian"], "--system: unknown system 'plian'; did you mean 'plain'?"),
        (["--dataset", "other"], "--dataset: unknown dataset 'other'"),
        (["--kind", "delusion"], "Invalid value for '--kind'"),
        (["--top", "0"], "Invalid value for '--top'"),
        (["--set", "baseline=nobody"], "unknown baseline 'nobody'"),
    ],
)
def test_wrong_options(arguments: list[str], says: str, capsys: Capture) -> None:
    assert main(["diagnose", EXPERIMENT, *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_missing_rerank_list_names_the_line(project: Path, capsys: Capture) -> None:
    edit(project, EXPERIMENT, "reranker: r", "reranker: none")
    assert main(["diagnose", EXPERIMENT, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["line"]
    assert "unknown reranker 'none'" in error["message"]
