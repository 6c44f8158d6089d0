"""What the commands of README.md and of pages of docs/ print, written anew beside each command.

    python -m benchmarks.studies.printed_blocks

A line that a page shows is replaced by the printed line that is most like it; ``...`` stays. The
tests compare the pages with what is printed.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

from benchmarks.studies.leaderboard.methods import ROOT
from fusion_bench.cli import main as run_command

PAGES = ("README.md", "docs/start.md", "docs/reference/diagnose.md")
#: A fenced block that is run or that shows what the block before it printed.
BLOCK = re.compile(r"(?<!set-up -->\n)```(console|python|text)\n(.*?)```", re.DOTALL)
#: Of what a Python block prints, which is wrapped.
WIDTH = 95
#: Lines that are less alike than this are different ones.
LEAST_LIKENESS = 0.6


def renew_lines(shown: str, printed: str) -> str:
    """The shown lines as they are printed now; a line of dots stands for anything.

    Args:
        shown: Lines of a page.
        printed: All that was printed.
    """
    lines = [line.rstrip() for line in printed.splitlines()]
    renewed, start = [], 0
    for line in shown.splitlines():
        if line.strip() in {"...", ""} or line.rstrip() in lines[start:]:
            renewed.append(line)
            start = (
                lines.index(line.rstrip(), start) + 1 if line.rstrip() in lines[start:] else start
            )
            continue
        matches = difflib.get_close_matches(line, lines[start:], 1, LEAST_LIKENESS)
        if not matches:
            print(f"by hand: nothing like {line!r} was printed")
            renewed.append(line)
            continue
        renewed.append(matches[0])
        start = lines.index(matches[0], start) + 1
    return "".join(f"{line}\n" for line in renewed)


def renew_page(text: str) -> str:
    """A page with its blocks run in their order, in the working directory."""
    names: dict[str, object] = {}
    printed = ""

    def renew_block(match: re.Match[str]) -> str:
        nonlocal printed
        language, block = match.groups()
        if language == "console":
            block = "".join(_renew_commands(block))
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(block, names)  # noqa: S102 - the page's own code
            printed = stream.getvalue()
        else:
            lines = [textwrap.fill(line, WIDTH) for line in printed.splitlines()]
            block = "".join(f"{line}\n" for line in lines)
        return f"```{language}\n{block}```"

    return BLOCK.sub(renew_block, text)


def _renew_commands(block: str) -> Iterator[str]:
    """Each command of a console block with what it prints."""
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
        command, shown = re.fullmatch(r"(\$ (?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        with contextlib.redirect_stdout(io.StringIO()) as stream:
            run_command(shlex.split(command.replace("\\\n", " "))[2:])
        yield command + renew_lines(shown, stream.getvalue())


def main() -> None:
    """Run the commands of each page in a copy of what a clone holds, and write the page."""
    os.environ["COLUMNS"] = "100"
    ignored = shutil.ignore_patterns(".cache*", ".fusion_bench_cache", "rebuild", "games")
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name in ("datasets", "experiments", "reports/baselines"):
                shutil.copytree(ROOT / name, Path(folder, name), ignore=ignored)
            text = renew_page((ROOT / page).read_text(encoding="utf-8"))
        (ROOT / page).write_text(text, encoding="utf-8")
        print(f"{page}: written")


if __name__ == "__main__":
    main()
