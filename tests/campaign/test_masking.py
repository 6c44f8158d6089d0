"""What an open campaign holds out is in no output, file or value of any command."""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import fusion_bench as fb
from benchmarks.leaderboard.evaluate import load_material
from fusion_bench.cli import main
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.campaign_ledger import read_events
from fusion_bench.io.held_out import LEDGER_NAME
from fusion_bench.models.rerank_run import prepare_request
from fusion_bench.serving.console.experiment_files import open_session
from tests.attacks.project import BASELINE, DATASET, EXPERIMENT, QRELS, RUN
from tests.campaign.masking import (
    CAMPAIGN,
    FOLDER,
    HELD_OUT,
    NAMED,
    close_campaign,
    make_projects,
    open_campaign,
)
from tests.golden.project import make_project, worsen
from tests.golden.test_pages import CALLS, normalized
from tests.golden.test_pages import OTHER as OTHER_RUN

#: Commands that make lists or types for all queries, which a campaign may be asked about.
MAKERS = ("dataset classify", "pull", "rerank", "retrieve bm25")
#: Of a command that copies judgments as they are.
OTHER_RUNS = ("dataset new",)
#: Lines that differ because a campaign is open, or because fewer others have a place beside them.
OWN_LINES = re.compile(r"holds out|held out|more warnings|notes?\.$")
KEPT = "q0"


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "120")
        patch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
        masked, reduced = make_projects(tmp_path_factory.mktemp("projects"))
        for project in (masked, reduced):
            patch.chdir(project)
            evaluation = ("eval", EXPERIMENT, "--no-html", "--out")
            assert main([*evaluation, "before"]) == 0
            assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
            worsen(project)
            assert main([*evaluation, "after"]) == 0
        yield masked, reduced


def list_files(project: Path) -> dict[Path, bytes]:
    files = (path for path in project.rglob("*") if path.is_file() and "mine" not in path.parts)
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("command", sorted(CALLS.keys() - set(OTHER_RUNS)))
def test_no_command_shows_held_out_queries_or_counts_them(
    command: str,
    projects: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code, words = CALLS[command]
    words = words.replace(" q3 d3 ", f" {KEPT} d0 ")
    pages = []
    for project in projects:
        monkeypatch.chdir(project)
        (project / FOLDER / "looks.jsonl").unlink(missing_ok=True)
        before = list_files(project)
        capsys.readouterr()
        assert main(words.split()) == code
        out, err = capsys.readouterr()
        assert not NAMED.search(out + err)
        new = [data for path, data in list_files(project).items() if before.get(path) != data]
        if command not in MAKERS:
            assert not NAMED.search("\n".join(data.decode(errors="replace") for data in new))
        pages.append(normalized(out, project).splitlines())
    if command not in MAKERS:
        assert all(OWN_LINES.search(line) for line in set(pages[0]) - set(pages[1]))


def test_commands_say_how_many_queries_are_held_out(
    projects: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(projects[0])
    for words in (
        f"eval {EXPERIMENT} --out said",
        "compare before after --candidate live",
        f"tune {EXPERIMENT} --trials 2 --out said-tuned",
        f"gate {EXPERIMENT}",
        f"diagnose {EXPERIMENT} --out said-diagnosis",
        "dataset check mine",
        "dataset show mine",
    ):
        capsys.readouterr()
        main(words.split())
        out = capsys.readouterr().out
        assert re.search(f"{CAMPAIGN}(:| holds out) {len(HELD_OUT)}", out)


@pytest.mark.parametrize("words", [f"explain {EXPERIMENT} {HELD_OUT[0]}", CALLS["dataset new"][1]])
def test_asking_for_a_held_out_query_and_copying_its_judgments_is_refused(
    words: str,
    projects: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(projects[0])
    assert main(words.split()) == 2
    assert not NAMED.search(capsys.readouterr().err.replace(repr(HELD_OUT[0]), ""))
    assert not (projects[0] / "own").exists()


def _as_text(value: Any) -> str:  # noqa: ANN401 - what the functions return
    record = getattr(value, "to_dict", lambda: None)()
    return f"{value!r} {value} {record}"


def _open_session() -> tuple[str, ...]:
    experiment, source = read_experiment(Path(EXPERIMENT))
    return open_session(experiment, source, folders=[Path("datasets")]).runs.queries


#: Python function → what it makes of the project.
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "agreement": lambda: fb.agreement(DATASET),
    "compare": lambda: fb.compare(QRELS, {"a": RUN, "b": OTHER_RUN}, measures="RR@10"),
    "documents_to_judge": lambda: fb.documents_to_judge(EXPERIMENT),
    "estimate": lambda: fb.estimate(EXPERIMENT, people="people", machine="llm"),
    "align_runs": lambda: fb.align_runs(fb.load_qrels(QRELS), {"a": fb.load_run(RUN)}).queries,
    "fuse": lambda: fb.fuse({"a": fb.load_run(RUN), "b": fb.load_run(OTHER_RUN)}, "rrf").to_dict(),
    "gate": lambda: fb.gate(EXPERIMENT),
    "load_dataset": lambda: fb.load_dataset(DATASET).qrels.to_dict(),
    "load_qrels": lambda: fb.load_qrels(QRELS).to_dict(),
    "load_run": lambda: fb.load_run(RUN).to_dict(),
    "pool": lambda: fb.pool(EXPERIMENT),
    "run_experiment": lambda: fb.run_experiment(EXPERIMENT).collections[0].queries,
    "tune": lambda: fb.tune(DATASET, trials=2, measure="RR@10"),
    "the console": _open_session,
    "the leaderboard": lambda: load_material(Path(DATASET)).task.runs.queries,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_returns_held_out_queries(
    name: str, projects: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for project in projects:
        monkeypatch.chdir(project)
        (project / FOLDER / "looks.jsonl").unlink(missing_ok=True)
        texts.append(_as_text(FUNCTIONS[name]()))
    assert "q0" in texts[0] or name not in {"load_qrels", "pool", "the console"}
    assert not NAMED.search(texts[0])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project with a baseline, a report, a tuning and judges of before the campaign."""
    root = make_project(tmp_path_factory.mktemp("prepared"))
    with chdir(root):
        for words in ([*EVAL, "before"], [*UPDATE, "first"], TUNE):
            assert main(words) == 0
    open_campaign(root / FOLDER)
    return root


@pytest.fixture
def project(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(shutil.copytree(prepared, tmp_path / "project"))
    return tmp_path / "project"


EVAL = ["eval", EXPERIMENT, "--no-html", "--out"]
UPDATE = ["gate", EXPERIMENT, "--update", "--reason"]
TUNE = ["tune", EXPERIMENT, "--trials", "2", "--no-plots", "--out", "tuned"]
EXPORT = "reports/judged.txt"


@pytest.mark.parametrize(
    "words",
    [
        ["gate", EXPERIMENT],
        [*UPDATE, "second"],
        ["compare", "before", "before"],
        ["power", "--from", "before"],
        TUNE,
        ["try", "--qrels", QRELS, RUN, OTHER_RUN, "--save", "saved", "--no-plots"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_values_and_judgments_of_before_are_refused(
    words: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(words) == 2
    assert not NAMED.search("".join(capsys.readouterr()))
    assert not [path for path in list_files(project) if {"saved", "logged"} & {*path.parts}]
    close_campaign(FOLDER)
    assert main(words) in {0, 1}


def test_the_refusals_of_stored_values_name_the_campaign(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["gate", EXPERIMENT], [*UPDATE, "second"], ["compare", "before", "before"]):
        capsys.readouterr()
        main(words)
        assert CAMPAIGN in "".join(capsys.readouterr())
    with pytest.raises(fb.FusionBenchError, match=CAMPAIGN):
        fb.read_report(project / "before")


def test_a_new_anchor_is_a_baseline_of_the_other_queries(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*UPDATE, "on tuning queries", "--anchor"]) == 0
    assert not NAMED.search((project / BASELINE).read_text())
    assert main(["gate", EXPERIMENT]) == 0
    assert not NAMED.search("".join(capsys.readouterr()))


def test_the_grades_of_judges_are_not_merged_into_judgments(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judgments = project / FOLDER / "judgments"
    judgments.mkdir()
    row = f"{HELD_OUT[0]},d2,1,ada,,2026-01-01T00:00:00+00:00"
    (judgments / "ada.csv").write_text(f"query,document,grade,judge,note,time\n{row}\n")
    words = ["judge", "mine", "--write-qrels", f"{FOLDER}/judgments/merged.txt"]
    assert main(words) == 2
    assert CAMPAIGN in capsys.readouterr().err
    close_campaign(FOLDER)
    assert main(words) == 0


@pytest.mark.usefixtures("project")
def test_no_list_of_all_queries_is_made_by_what_learned_from_held_out_ones() -> None:
    path = FOLDER / "dataset.yaml"
    plain = fb.System("plain", ["a", "b"], "rrf")
    candidates = prepare_request(path, plain, depth=2).queries
    assert {*HELD_OUT} <= {query.id for query in candidates}
    learned = fb.System("learned", ["a", "b"], "logistic_regression")
    with pytest.raises(fb.FusionBenchError, match=rf"learned.*{CAMPAIGN}"):
        prepare_request(path, learned, depth=2)


@pytest.mark.usefixtures("project")
def test_a_person_may_read_them_by_name_which_the_ledger_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = ["--show-held-out", "Ada"]
    assert main([*shown, "gate", EXPERIMENT]) == 0
    assert main([*shown, "compare", "before", "before"]) == 0
    assert main([*shown, *EVAL, "whole"]) == 0
    assert CAMPAIGN not in "".join(capsys.readouterr())
    overrides = [event for event in read_events(FOLDER / LEDGER_NAME) if event.event == "override"]
    assert {event.command for event in overrides} == {
        f"fusion-bench {c}" for c in ("gate", "compare", "eval")
    }
    assert {event.by for event in overrides} == {"Ada"}
    assert main(["compare", "whole", "whole"]) == 2


@pytest.mark.usefixtures("project")
def test_after_close_values_are_whole_again() -> None:
    assert main([*EVAL, "masked"]) == 0
    close_campaign(FOLDER)
    assert main([*EVAL, "after"]) == 0
    before, masked, after = map(fb.read_report, ("before", "masked", "after"))
    assert len(masked.collections[0].queries) == len(after.collections[0].queries) - len(HELD_OUT)
    assert after.collections == before.collections
