"""A campaign over lists of chunks: the parents are frozen with the data."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests import campaign_project as project

Capture = pytest.CaptureFixture[str]
EXPERIMENT = """\
dataset: made
measures: [nDCG@10]
baseline: weak
systems:
  weak: {runs: [weak], collapse: {by: {field: of}, score: max}}
  both: {runs: [weak, strong], collapse: {by: {field: of}, score: max}}
"""
BOTH = "runs: [weak, strong]\ncollapse: {by: {field: of}, score: max, place: each list}\n"
FOLDER = Path("datasets/made")


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made project with lists of chunks, each the second part of its document."""
    monkeypatch.chdir(project.make(tmp_path, experiment=EXPERIMENT))
    names = set()
    for name in project.SHARES:
        rows = [line.split() for line in (FOLDER / f"{name}.trec").read_text("utf-8").splitlines()]
        names |= {row[2] for row in rows}
        text = "".join(" ".join([*row[:2], f"c-{row[2]}", *row[3:], "\n"]) for row in rows)
        (FOLDER / f"{name}.trec").write_text(text, "utf-8")
    write_documents({f"c-{name}": name for name in names})
    with (FOLDER / "dataset.yaml").open("a") as file:
        file.write("documents: documents.jsonl\n")
    (tmp_path / "both.yaml").write_text(BOTH, "utf-8")
    return tmp_path


def write_documents(parents: dict[str, str]) -> None:
    lines = [json.dumps({"id": name, "text": "t", "of": of}) for name, of in parents.items()]
    (FOLDER / "documents.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def run(capsys: Capture, *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["campaign", *words])
    return code, *capsys.readouterr()


def open_here(capsys: Capture) -> None:
    code, _, err = run(capsys, "open", "experiments/e.yaml", "--asks", "20", "--allow-weak")
    assert not code, err


def test_a_campaign_of_collapsed_systems(capsys: Capture) -> None:
    open_here(capsys)
    code, out, err = run(
        capsys, "ask", project.CAMPAIGN, "--set", "collapse.score=sum", "--explain", "--json"
    )
    kept = json.loads(out)
    assert (code, kept["answer"], kept["tuning"]["lost"]) == (1, "keep", []), err
    code, out, err = run(capsys, "ask", project.CAMPAIGN, "both.yaml", "--json")
    assert (code, json.loads(out)["answer"]) == (0, "ship"), err
    code, out, err = run(capsys, "close", project.CAMPAIGN, "--by", "A. Person", "--json")
    report = json.loads(out)
    assert (code, report["changes"]) == (0, ""), err
    assert sum(report["shipped_values"]) > sum(report["baseline_values"]) > 0


def test_parents_that_change_close_a_campaign(capsys: Capture) -> None:
    open_here(capsys)
    lines = (FOLDER / "documents.jsonl").read_text("utf-8").splitlines()
    parents = {each["id"]: each["of"] for each in map(json.loads, lines)}
    write_documents({**parents, "c-r0": "x1-1", "c-in-no-list": "r0"})
    code, out, _ = run(capsys, "ask", project.CAMPAIGN, "both.yaml", "--json")
    assert code == 3
    assert "{field: 'of'}" in json.loads(out)["reason"]
    write_documents({**parents, "c-in-no-list": "r0"})
    assert run(capsys, "ask", project.CAMPAIGN, "both.yaml")[0] == 0


@pytest.mark.parametrize(
    ("collapse", "message"),
    [
        ("{by: {field: doc}, score: max}", "the parents by {field: 'doc'} are not frozen"),
        (
            "{by: id, score: sum, place: each list}",
            "delete collapse, and write 'collapse: sum' at list 'weak' in",
        ),
        ("{by: {field: of}, keep: 1}", "Write 'collapse: {by: {field: 'of'}, score: max}' there."),
    ],
)
def test_a_candidate_that_collapses_otherwise_is_refused(
    collapse: str, message: str, capsys: Capture
) -> None:
    open_here(capsys)
    Path("other.yaml").write_text(f"runs: [weak]\ncollapse: {collapse}\n", "utf-8")
    code, _, err = run(capsys, "ask", project.CAMPAIGN, "other.yaml")
    assert code
    assert message in err
    assert err.count("\n") == 1
    _, out, _ = run(capsys, "status", project.CAMPAIGN, "--json")
    assert json.loads(out)["asks_left"] == 20
