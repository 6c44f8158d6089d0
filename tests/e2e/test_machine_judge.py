"""Every report names a machine judge first; the gate refuses a circular or unmeasured one."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from fusion_bench.checks.records import JudgeInfo
from fusion_bench.cli import main
from fusion_bench.experiment.system import System
from fusion_bench.serving.console.session import ConsoleSession
from tests.judge_project import EXPERIMENT, make
from tests.tiny import edit

Announce = Callable[[str], None]

Capture = pytest.CaptureFixture[str]
REPORT = "reports/mine/report.json"
GATE = ["gate", EXPERIMENT, "--no-html", "-v"]
UPDATE = [*GATE, "--update", "--reason", "first"]
COMMANDS = {
    "eval": (["eval", EXPERIMENT, "-v"], ("report.md", "report.html")),
    "tune": (["tune", EXPERIMENT, "-v"], ("tuning/tuning.md", "tuning/tuning.html")),
    "compare": (["compare", REPORT, "-v"], ()),
    "compare two": (
        ["compare", REPORT, REPORT, "-v", "--html", "--out", "reports/mine/two"],
        ("two/comparison.html",),
    ),
    "power": (["power", "--from", REPORT, "-v"], ()),
    "diagnose": (["diagnose", EXPERIMENT, "-v"], ("diagnosis.md",)),
    "check": (["dataset", "check", "mine", "-v"], ()),
}
NEVER = "Its agreement with people was never measured"
MEASURED = "agreement with people (people): Cohen's κ 0.8750"
CIRCULAR = "The judge is of the family gpt, and so is r (rerank)"


@pytest.fixture(scope="module")
def circular(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The judge is measured, and of the family of the reranker and of run b."""
    root = tmp_path_factory.mktemp("circular")
    return make(root, "kind: machine, family: GPT", rerank=", family: gpt")


@pytest.mark.parametrize("command", COMMANDS)
def test_reports_say_who_judged_and_that_it_is_circular(
    circular: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, command: str
) -> None:
    monkeypatch.chdir(circular)
    words, pages = COMMANDS[command]
    if words[0] in {"compare", "power"} and not (circular / REPORT).exists():
        assert main(COMMANDS["eval"][0]) == 0
        capsys.readouterr()
    assert main(words) == 0
    shown = [capsys.readouterr().out]
    shown += [(circular / "reports/mine" / name).read_text(encoding="utf-8") for name in pages]
    for page in shown:
        plain = " ".join(page.replace("\\", "").replace("&#39;", "'").split())
        assert "family gpt." in plain
        assert MEASURED in plain
        assert "120 pairs of 40 queries" in plain
        assert CIRCULAR in plain
        assert plain.count(CIRCULAR) == 1
    if words[0] != "dataset":  # before anything but the title
        assert shown[0].index("machine judge") < 200


def test_the_json_of_eval_and_tune_names_the_judge(
    circular: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(circular)
    assert main([*COMMANDS["eval"][0], "--json"]) == 0
    [collection] = json.loads(capsys.readouterr().out)["collections"]
    judge = collection["judge"]
    assert (judge["family"], judge["people"], judge["pairs"]) == ("gpt", "people", 120)
    assert judge["low"] < judge["kappa"] < judge["high"]
    families = {info["name"]: info["family"] for info in collection["runs"]}
    assert families == {"a": None, "b": None, "r": "gpt"}
    assert main([*COMMANDS["tune"][0], "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["data"]["warnings"]
    assert [each["key"] for each in warnings][:2] == ["machine judge", "shared family"]
    assert main([*COMMANDS["power"][0], "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [each["key"] for each in warnings][:3] == [
        "machine judge",
        "shared family",
        "zero scores",
    ]


def test_the_console_names_the_judge(
    circular: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """In the page, and in what the command says when it starts."""
    from fusion_bench.cli import serve as serve_command
    from fusion_bench.util import loopback

    monkeypatch.chdir(circular)
    notes: list[str] = []

    def serve(session: ConsoleSession, _: object, *, announce: Announce, **__: object) -> None:
        notes.extend(session.describe()["notes"])
        announce("http://127.0.0.1:1/")

    monkeypatch.setattr(serve_command, "serve_session", serve)
    monkeypatch.setattr(loopback, "open_socket", lambda _: nullcontext())
    assert main(["serve", EXPERIMENT, "--no-open"]) == 0
    for shown in (" ".join(notes), " ".join(capsys.readouterr().err.split())):
        assert "family gpt." in shown
        assert CIRCULAR in shown
    assert main(["serve", EXPERIMENT, "--no-open", "--json"]) == 0
    assert CIRCULAR in json.loads(capsys.readouterr().out)["warnings"][1]


@pytest.mark.parametrize("words", [GATE, UPDATE])
def test_the_gate_refuses_a_circular_judge(
    circular: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str]
) -> None:
    monkeypatch.chdir(circular)
    human = (circular / "datasets/mine/dataset.yaml").read_text(encoding="utf-8")
    plain = human.replace("kind: machine, family: GPT", "kind: human")
    if "--update" not in words:  # a baseline of a time when people judged
        (circular / "datasets/mine/dataset.yaml").write_text(plain, encoding="utf-8")
        assert main([*words, "--update", "--reason", "first"]) == 0
        (circular / "datasets/mine/dataset.yaml").write_text(human, encoding="utf-8")
        capsys.readouterr()
    assert main(words) == 2
    captured = capsys.readouterr()
    assert CIRCULAR in " ".join((captured.out + captured.err).split())
    assert "of another family" in captured.out + captured.err
    # an update is refused as well, so it is not what to do next
    assert "--reason" not in captured.out + captured.err


def gate_twice(root: Path, capsys: Capture) -> tuple[int, int, str]:
    update = main(UPDATE)
    code = main(GATE)
    captured = capsys.readouterr()
    assert root.exists()
    return update, code, " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    ("qrels", "more", "codes", "text"),
    [
        ("kind: machine", "", (2, 2), NEVER),
        ("kind: machine, unmeasured: accept", "", (0, 0), NEVER),
        ("kind: machine", None, (0, 0), MEASURED),
        ("kind: human", "", (0, 0), ""),
        ("kind: machine", "judges: {m: {path: people.csv, kind: machine}}\n", (2, 2), NEVER),
    ],
)
def test_the_gate_asks_for_agreement_with_people(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    qrels: str,
    more: str | None,
    codes: tuple[int, int],
    text: str,
) -> None:
    given = {} if more is None else {"more": more}
    monkeypatch.chdir(make(tmp_path, qrels, **given))
    update, code, shown = gate_twice(tmp_path, capsys)
    assert (update, code) == codes, shown
    assert text in shown
    assert ("machine judge" in shown) == ("machine" in qrels)
    if codes == (2, 2):
        assert "unmeasured: accept" in shown


def test_too_few_pairs_measure_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(make(tmp_path, "kind: machine"))
    people = tmp_path / "datasets/mine/people.csv"
    lines = people.read_text(encoding="utf-8").splitlines(keepends=True)
    people.write_text("".join(lines[:100]), encoding="utf-8")  # 99 pairs
    update, code, shown = gate_twice(tmp_path, capsys)
    assert (update, code) == (2, 2)
    assert "Too few pairs " in shown
    people.write_text("".join(lines[:101]), encoding="utf-8")
    assert gate_twice(tmp_path, capsys)[:2] == (0, 0)


@pytest.mark.parametrize(("accept", "codes"), [("", (2, 2)), (", unmeasured: accept", (0, 0))])
def test_a_judge_no_better_than_chance_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    accept: str,
    codes: tuple[int, int],
) -> None:
    monkeypatch.chdir(make(tmp_path, f"kind: machine{accept}"))
    chance = Random(1)
    rows = [f"q{q},d{d},{chance.randrange(3)}\n" for q in range(40) for d in range(1, 4)]
    people = tmp_path / "datasets/mine/people.csv"
    people.write_text("query,document,grade\n" + "".join(rows), encoding="utf-8")
    update, code, shown = gate_twice(tmp_path, capsys)
    assert (update, code) == codes, shown
    assert "better than chance" in shown
    assert "120 pairs of 40 queries" in shown
    assert ("'unmeasured: accept'" in shown) == (codes == (2, 2))
    assert main(COMMANDS["eval"][0]) == 0
    assert " shown to agree" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("kappa", "low", "shows"),
    [
        (0.1, 0.01, True),
        (0.1, 0.0, False),
        (0.0, 0.0, False),
        (0.5, None, False),
        (None, None, False),
    ],
)
def test_the_whole_interval_must_be_above_chance(
    kappa: float | None, low: float | None, shows: bool
) -> None:
    judge = JudgeInfo(people="ann", pairs=100, queries=9, kappa=kappa, low=low, high=0.9)
    assert judge.is_better_than_chance is shows
    assert not judge.model_copy(update={"pairs": 99}).is_better_than_chance


def test_an_update_says_who_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    words = [*GATE, "--update", "--reason"]
    monkeypatch.chdir(make(tmp_path, "kind: machine"))
    assert main([*words, "first"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("! The grades are ") == 1
    assert MEASURED in shown
    make(tmp_path, "kind: human")
    assert main([*words, "people judge"]) == 0
    assert "machine judge" not in capsys.readouterr().out


def test_lists_that_no_compared_system_reads_are_no_circle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    make(tmp_path, "kind: machine, family: gpt", run=", family: gpt", rerank=", family: gpt")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / EXPERIMENT
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("  system: both\n", "  system: a\n"), encoding="utf-8")
    update, code, shown = gate_twice(tmp_path, capsys)
    assert (update, code) == (0, 0), shown
    assert "so is" not in shown


#: The command that estimates means from a sample of people's grades.
ESTIMATE = (
    *("grades", "estimate", EXPERIMENT),
    *("--human-judge", "people", "--machine-judge", "qrels"),
)


def test_an_estimate_begins_with_the_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    says = "Judge 'qrels' is of the family gpt, and so is r"
    people = "judges: {people: {path: people.csv, kind: human, sample: random}}\n"
    make(tmp_path, "kind: machine, family: gpt", more=people, rerank=", family: gpt")
    monkeypatch.chdir(tmp_path)
    assert main([*ESTIMATE, "-v"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.index(says) < 200
    assert main(ESTIMATE) == 0
    assert f"\n! {says}" in capsys.readouterr().out
    assert main([*ESTIMATE, "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["data_warnings"]
    assert warnings[0]["key"] in {"machine judge", "shared family"}
    assert warnings


def test_people_are_asked_for_what_a_machine_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(make(tmp_path, "kind: machine"))
    assert main(["judge", "mine", "--list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["documents"]) == 120
    folder = tmp_path / "datasets/mine/judgments"
    folder.mkdir()
    (folder / "ann.csv").write_text(
        "query,document,grade,judge,note,time\nq0,d1,2,ann,,\n", encoding="utf-8"
    )
    assert main(["judge", "mine", "--write-qrels", str(folder / "qrels.txt")]) == 2
    assert "would hide that" in capsys.readouterr().err
    make(tmp_path, "kind: human")
    capsys.readouterr()
    assert main(["judge", "mine", "--judge", "bob", "--list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["documents"]) < 120


@pytest.mark.parametrize("kind", ["machine, unmeasured: accept", "human"])
def test_grades_that_tell_no_system_from_another_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, kind: str
) -> None:
    monkeypatch.chdir(make(tmp_path, f"kind: {kind}", more="binary_relevance: 2\n"))
    rows = [f"q{q} 0 d{d} 1\n" for q in range(40) for d in range(1, 4)]
    (tmp_path / "datasets/mine/qrels.txt").write_text("".join(rows), encoding="utf-8")
    assert main(UPDATE) == 0
    for words in (*(COMMANDS[name][0] for name in ("eval", "tune", "compare")), GATE):
        capsys.readouterr()
        assert main(words) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert " from grade 2, " in shown
        one_grade = "gave every judged document grade 1"
        assert (one_grade in shown) == (kind != "human")


# ── A system may declare the family of a model that works in it; the judge's own is circular


CIRCULAR_SYSTEM = "The judge is of the family gpt, and so is both (system)"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(make(tmp_path, "kind: machine, family: gpt"))
    edit(tmp_path, EXPERIMENT, "both: {runs", "both: {family: GPT, runs")
    return tmp_path


def show(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(words) == 0
    return " ".join(capsys.readouterr().out.split())


def test_reports(root: Path, capsys: Capture) -> None:
    assert CIRCULAR_SYSTEM in show(capsys, "eval", EXPERIMENT, "-v")
    for name in ("report.md", "report.html"):
        text = (root / "reports/mine" / name).read_text(encoding="utf-8")
        assert CIRCULAR_SYSTEM in " ".join(text.replace("\\", "").split())
    [collection] = json.loads((root / "reports/mine/report.json").read_text())["collections"]
    assert collection["judge"]["related_systems"] == ["both"]
    assert CIRCULAR_SYSTEM in show(capsys, "compare", "reports/mine", "-v")
    assert CIRCULAR_SYSTEM in show(capsys, "tune", EXPERIMENT, "-v")
    assert CIRCULAR_SYSTEM in show(capsys, "diagnose", EXPERIMENT, "-v")
    words = ("explain", EXPERIMENT, "q0", "--system")
    assert CIRCULAR_SYSTEM in show(capsys, *words, "both")
    assert CIRCULAR_SYSTEM in show(capsys, *words, "both", "--json")
    assert CIRCULAR_SYSTEM not in show(capsys, *words, "a")
    other = ("--set", "baseline=a", "--set", "systems.both.family=llama")
    assert CIRCULAR_SYSTEM not in show(capsys, "eval", EXPERIMENT, "--no-plots", *other)


def test_the_gate_refuses_it(root: Path, capsys: Capture) -> None:
    """Also where only the system of the baseline is of the judge's family."""
    assert main(UPDATE) == 2
    assert CIRCULAR_SYSTEM in " ".join(capsys.readouterr().err.split())
    edit(root, "datasets/mine/dataset.yaml", "family: gpt", "family: llama")
    assert main(UPDATE) == 0
    edit(root, EXPERIMENT, "family: GPT, ", "")
    edit(root, "datasets/mine/dataset.yaml", "family: llama", "family: gpt")
    capsys.readouterr()
    assert main(GATE) == 2
    assert CIRCULAR_SYSTEM in " ".join(capsys.readouterr().err.split())


def test_stages_and_names() -> None:
    """A stage's family is found; a system without one is written as before."""
    from fusion_bench.checks.judges import find_related_systems

    plain = System("plain", ["a"])
    inner = System("outer", ["first"], stages={"first": {"runs": ["a"], "family": "Gpt"}})
    assert find_related_systems([plain, inner], "gpt") == ("outer",)
    assert find_related_systems([plain, inner], None) == ()
    assert "family" not in plain.resolved_config
