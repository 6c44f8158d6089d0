"""Every command of the skill runs in the shell, and ends with the exit code that stands there."""

import re
from importlib import resources
from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.cli.skill import FILES
from tests.commands import leaf_commands
from tests.docs.printed import ROOT
from tests.skill.shell import Projects, run

SOURCE = Path(str(resources.files("fusion_bench.cli") / "skill"))
TEXTS = {name: (SOURCE / name).read_text(encoding="utf-8") for name in FILES}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: File → commands by which its project is ready.
READY: dict[str, tuple[str, ...]] = {
    "references/commands.md": (),
    "references/campaign.md": (
        "fusion-bench dataset new datasets/mine --qrels qrels.txt --queries queries.jsonl "
        "bm25=bm25.trec.gz dense=dense.trec.gz",
    ),
}
MOST_LINES = 200
AGENTS = ROOT / "docs" / "agents.md"


def list_commands(name: str) -> list[tuple[str, int]]:
    """The commands of a file's blocks, each with the exit code of its comment."""
    lines = [line for _, text in BLOCK.findall(TEXTS[name]) for line in text.splitlines()]
    codes = [re.search(r"# exit (\d+)", line) for line in lines]
    return [(line, int(code[1]) if code else 0) for line, code in zip(lines, codes, strict=True)]


def test_the_skill_is_short_and_its_files_are_all_of_the_folder() -> None:
    assert sum(len(text.splitlines()) for text in TEXTS.values()) <= MOST_LINES
    there = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.md")}
    assert there == set(FILES)
    links = set(re.findall(r"\]\(([^)]+)\)", TEXTS["SKILL.md"]))
    assert links == set(FILES) - {"SKILL.md"}
    assert {language for text in TEXTS.values() for language, _ in BLOCK.findall(text)} == {"sh"}


def test_the_head_names_the_skill_and_when_to_use_it() -> None:
    _, head, _ = TEXTS["SKILL.md"].split("---\n", 2)
    keys = dict(line.split(": ", 1) for line in head.splitlines())
    assert keys.keys() == {"name", "description"}
    assert re.fullmatch(r"[a-z0-9-]{1,64}", keys["name"])
    assert len(keys["description"]) <= 1024  # what agents read of it


def test_every_command_that_it_names_is_there() -> None:
    """With keys that the page for agents has, where a test reads them."""
    page = set(re.findall(r"`([^`]+)`", BLOCK.sub("", AGENTS.read_text(encoding="utf-8"))))
    rows = [line.split(" | ") for line in TEXTS["SKILL.md"].splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    for _, commands, keys in rows[1:]:
        for span in re.findall(r"`([^`]+)`", commands):
            assert re.sub(r" (--|[A-Z]).*", "", span) in leaf_commands()
        assert set(re.findall(r"`([^`]+)`", keys)) <= page


@pytest.mark.parametrize("name", READY)
def test_every_command_ends_as_it_says(name: str, projects: Projects, tmp_path: Path) -> None:
    root = projects.copy(READY[name], tmp_path)
    commands = list_commands(name)
    assert commands
    for command, code in commands:
        step = run(command, root)
        assert step.code == code, step


def test_the_folder_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["skill", "--out", "skill"]) == 0
    assert {name: Path("skill", name).read_text("utf-8") for name in FILES} == TEXTS
    assert main(["skill", "--out", "skill"]) == 0  # its own files may be written again
    Path("other/references").mkdir(parents=True)
    Path("other/references/answers.md").write_text("mine\n", "utf-8")
    capsys.readouterr()
    assert main(["skill", "--out", "other"]) == 2
    assert "other/references/answers.md" in capsys.readouterr().err
    assert not Path("other/SKILL.md").exists()
    assert Path("other/references/answers.md").read_text("utf-8") == "mine\n"
