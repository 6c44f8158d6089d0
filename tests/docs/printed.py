"""Commands of a page, run in a copy of what a clone holds; they have to print what it shows."""

import contextlib
import doctest
import io
import re
import shlex
import shutil
from pathlib import Path

from fusion_bench.cli import main

ROOT = Path(__file__).parents[2]


def copy_clone(folder: Path, *names: str) -> None:
    """Copy these folders of the repository, without what a run leaves in them."""
    ignored = shutil.ignore_patterns(".cache*", ".fusion_bench_cache", "rebuild", "games")
    for name in names:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)


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


def run_command(command: str, shown: str) -> int:
    """The exit code of a command that prints what is shown."""
    program, *arguments = shlex.split(command)
    assert program == "fusion-bench"
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        code = main(arguments)
    assert matches(shown, stream.getvalue()), stream.getvalue()
    return code
