"""``fusion-bench grades agreement``: confusion, shares by grade, references and refusals."""

import json
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.judging.agreement import AgreementReport, JudgeGrades, measure_agreement

Capture = pytest.CaptureFixture[str]
PEOPLE = {"q1": {"d1": 2, "d2": 0, "d3": 1, "d4": 2}, "q2": {"d1": 0, "d2": 1}}
MODEL = {"q1": {"d1": 2, "d2": 0, "d3": 2, "d9": 0}, "q2": {"d1": 1, "d2": 1}}


def judges(**grades: dict[str, dict[str, int]]) -> dict[str, JudgeGrades]:
    """Judges by name; people are human, all others machines."""
    return {
        name: JudgeGrades(Qrels.from_dict(given), "human" if name == "people" else "machine")
        for name, given in grades.items()
    }


def test_shares_by_grade_are_those_of_the_confusion() -> None:
    given = judges(model=MODEL, people=PEOPLE)
    [pair] = measure_agreement(given, binary_relevance=2).comparisons
    assert (pair.reference, pair.judge, pair.pairs, pair.queries) == ("people", "model", 5, 2)
    assert pair.confusion == ((1, 1, 0), (0, 1, 1), (0, 0, 1))
    shares = [(each.recall, each.precision) for each in pair.per_grade]
    assert shares == [(0.5, 1.0), (0.5, 0.5), (1.0, 0.5)]
    assert pair.equal == pytest.approx(3 / 5)
    assert pair.mean_difference == pytest.approx(2 / 5)
    assert pair.graded.kappa == pytest.approx(1 - (2 / 5) / (1 - 8 / 25))
    assert pair.binary.kappa == pytest.approx(1 - (1 / 5) / (1 - 14 / 25))
    assert [each.query for each in pair.lowering] == ["q2"]


def test_each_judge_is_compared_with_people_and_people_with_each_other() -> None:
    given = judges(a=MODEL, people=PEOPLE, b=MODEL)
    for references, pairs in (
        ([], [("people", "a"), ("people", "b")]),
        (["b", "people"], [("b", "people"), ("b", "a"), ("people", "a")]),
    ):
        report = measure_agreement(given, binary_relevance=1, references=references)
        assert [(c.reference, c.judge) for c in report.comparisons] == pairs
    unknown = {name: JudgeGrades(judge.qrels) for name, judge in given.items()}
    assert len(measure_agreement(unknown, binary_relevance=1).comparisons) == 3
    given = judges(people={"q1": {"d1": 0, "d2": 2}}, m={"q1": {"d1": 0, "d2": 0}})
    [pair] = measure_agreement(given, binary_relevance=1).comparisons
    assert (pair.per_grade[1].recall, pair.per_grade[1].precision) == (0.0, None)
    assert (pair.graded.kappa, pair.graded.low) == (0.0, None)


@pytest.mark.parametrize(
    ("given", "references", "error", "message"),
    [
        (judges(people=PEOPLE), (), ConfigError, "two judges"),
        (judges(people=PEOPLE, m={"q9": {"d1": 1}}), (), DataError, "the same document"),
        (judges(people=PEOPLE, m=MODEL), ("poeple",), UnknownNameError, "did you mean"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    given: dict[str, JudgeGrades], references: tuple[str, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        measure_agreement(given, binary_relevance=1, references=references)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset with machine grades as judgments and people's beside them."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "datasets" / "mine"
    folder.mkdir(parents=True)
    Qrels.from_dict(MODEL).to_trec(folder / "qrels.txt")
    Qrels.from_dict(PEOPLE).to_trec(folder / "people.txt")
    (folder / "a.trec").write_text("q1 Q0 d1 1 2 a\n")
    (tmp_path / "experiment.yaml").write_text("dataset: mine\n")
    (folder / "dataset.yaml").write_text(
        "name: mine\nqrels: {path: qrels.txt, kind: machine}\nruns: {a: {path: a.trec}}\n"
        "judges: {people: {path: people.txt, kind: human}}\nbinary_relevance: 2\n"
    )
    return tmp_path


@pytest.mark.usefixtures("project")
def test_the_command_reads_a_dataset(capsys: Capture) -> None:
    assert main(["grades", "agreement", "mine", "--json"]) == 0
    report = AgreementReport.model_validate_json(capsys.readouterr().out)
    [pair] = report.comparisons
    assert (pair.reference, pair.judge, report.binary_relevance) == ("people", "qrels", 2)
    assert pair.binary.kappa == pytest.approx(1 - (1 / 5) / (1 - 14 / 25))


def test_the_command_reads_files_and_writes_a_page(project: Path, capsys: Capture) -> None:
    folder = "datasets/mine"
    files = [f"p={folder}/people.txt", f"m={folder}/qrels.txt"]
    options = ["--weighting", "quadratic", "--markdown", "page.md"]
    assert main(["grades", "agreement", *files, *options]) == 0
    out = capsys.readouterr().out
    assert "κ quadratic" in out
    assert "5 pairs of 2 queries" in (project / "page.md").read_text(encoding="utf-8")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mien"], "mien"),
        (["experiment.yaml"], "dataset or files"),
        (["datasets/mine/people.txt"], "needs two judges"),
        (["mine", "--human-judge", "poeple"], "poeple"),
        (["mine", "--qrels-columns", "grade=rel"], "--qrels-columns"),
        (["datasets/mine/people.txt", "a=no.txt"], "no.txt"),
        (["mine", "--binary-relevance", "0"], "--binary-relevance"),
    ],
)
def test_the_command_says_what_it_cannot_do(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert main(["grades", "agreement", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_dataset_without_judges_names_the_key(project: Path, capsys: Capture) -> None:
    path = project / "datasets/mine/dataset.yaml"
    path.write_text("name: mine\nqrels: qrels.txt\nruns: {a: {path: a.trec}}\n")
    assert main(["grades", "agreement", "mine", "--json"]) == 2
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert "no 'judges'" in message
