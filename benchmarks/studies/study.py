"""What the studies share: their command line, and their tables in docs/studies/tuning.md."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.table import replace_between_marks

PAGE = Path(__file__).parents[2] / "docs" / "studies" / "tuning.md"


def parse_options(
    arguments: Sequence[str] | None,
    description: str | None,
    full: Mapping[str, int],
    toy: Mapping[str, int],
) -> argparse.Namespace:
    """The options of a study: its numbers, ``--only``, ``--toy`` and ``--write``.

    Args:
        arguments: Words of the command line; None = those of the process.
        description: For the help.
        full: Option → its default.
        toy: Option → its default with ``--toy``.
    """
    parser = argparse.ArgumentParser(description=description)
    for name, number in full.items():
        parser.add_argument(f"--{name}", type=int, help=f"{number} by default")
    parser.add_argument("--only", default="", help="only collections whose name contains this")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--toy", action="store_true", help="a small made collection, a few seconds")
    mode.add_argument("--write", action="store_true", help="renew docs/studies/tuning.md")
    options = parser.parse_args(arguments)
    for name, number in (toy if options.toy else full).items():
        if getattr(options, name) is None:
            setattr(options, name, number)
    return options


def write_table(name: str, table: str) -> None:
    """Put a table into docs/studies/tuning.md, between the marks of its name."""
    replace_between_marks(PAGE, f"\n{table}\n\n", name)
