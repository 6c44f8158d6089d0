"""What an open campaign holds out is in no output, file or value of any command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fusion_bench.cli import main
from tests.attacks.project import EXPERIMENT
from tests.campaign.masking import (
    CAMPAIGN,
    FOLDER,
    HELD_OUT,
    NAMED,
    make_projects,
)
from tests.golden.project import worsen
from tests.golden.test_pages import CALLS, normalized

#: Commands that make lists or types for all queries, which a campaign may be asked about.
MAKERS = ("classify", "pull", "rerank", "retrieve bm25", "retrieve graph")
#: Of a command that copies judgments as they are, and of one on other queries.
OTHERS = ("dataset new", "dataset from-logs")
#: Lines that differ because a campaign is open, or because fewer others have a place beside them.
OWN_LINES = re.compile(r"holds out|held out|more warnings|notes?\.$")
KEPT = "q0"


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Each with a report before and after a change, and a baseline."""
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
    """The files of a project but those of the dataset."""
    files = (path for path in project.rglob("*") if path.is_file() and "mine" not in path.parts)
    return {path: path.read_bytes() for path in files}


@pytest.mark.parametrize("command", sorted(CALLS.keys() - set(OTHERS)))
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
