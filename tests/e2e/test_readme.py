"""Every block of the README but the set-up is run, and prints what the README shows."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fusion_bench.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


class Block(NamedTuple):
    """A fenced block: its language, its text, and whether it only sets things up."""

    language: str
    text: str
    is_setup: bool


def readme_blocks() -> Iterator[Block]:
    pattern = r"(<!-- set-up -->\n)?```(\w+)\n(.*?)```"
    for setup, language, text in re.findall(pattern, README, re.DOTALL):
        yield Block(language, text, bool(setup))


BLOCKS = list(readme_blocks())


def parse_console(text: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output below it."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    pairs = []
    for part in parts:
        command, _, output = part.replace("\\\n", " ").partition("\n")
        pairs.append((command, output))
    return pairs


def matches(shown: str, printed: str) -> bool:
    """Whether the output is the one shown, where ``...`` stands for anything."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(shown, printed, flags)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what a clone holds, as the working directory."""
    ignored = shutil.ignore_patterns(".cache*", "rebuild")
    for name in ("datasets", "experiments"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copytree(ROOT / "reports/baselines", tmp_path / "reports/baselines")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("RAG_FUSION_V2_ENABLED", raising=False)
    return tmp_path


def test_only_the_two_commands_and_the_activation_are_set_up() -> None:
    setup = [block.text for block in BLOCKS if block.is_setup]
    commands = [line.split("#")[0].split() for text in setup for line in text.splitlines()]
    assert [c for c in commands if c] == [
        ["make", "eval"],
        ["make", "test"],
        [".", ".venv/bin/activate"],
    ]


@pytest.mark.usefixtures("folder")
def test_the_blocks_run_in_their_order_and_print_what_is_shown() -> None:
    names: dict[str, object] = {}
    codes: list[int] = []
    printed = ""
    for block in BLOCKS:
        if block.is_setup:
            continue
        if block.language == "console":
            codes += [run_command(*pair) for pair in parse_console(block.text)]
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(block.text, names)  # noqa: S102 - the README's own code
            printed = stream.getvalue()
        elif block.language == "text":
            assert matches(block.text, printed), printed
        else:
            pytest.fail(f"a block in {block.language!r} is not tested")
    assert codes == [0, 0, 1]  # try, the first baseline, and a regression
    assert printed


def run_command(command: str, shown: str) -> int:
    program, *arguments = shlex.split(command)
    assert program == "fusion-bench"
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        code = main(arguments)
    assert matches(shown, stream.getvalue()), stream.getvalue()
    return code


def test_every_link_leads_to_a_file() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)
    local = [target.partition("#")[0] for target in targets if "://" not in target]
    assert local
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_there_is_no_placeholder() -> None:
    assert not re.search(r"example\.(com|org)|<[A-Za-z-]+>|YOUR|TODO|@TAG", README)
