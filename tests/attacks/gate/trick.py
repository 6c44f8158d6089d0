"""A trick, the project that it starts from, and what tricks do to it."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.attacks.project import EXPERIMENT, GATE
from tests.edits import Edit, nothing, replaced
from tests.gate import cases

OTHER_RUN: Final = "datasets/mine/b.trec"
POLICY: Final = """\
gate:
  system: live
  checks:
    RR@10: {max_drop: 0.01}
    P@1: {max_drop: 0.01}
  slices: [local]
  lists: refuse
  guards: [{measure: RR@10, max_loss: 0.7, max_share: 0.1}]
  golden: [{query: q3, document: d3, top: 1}]
"""
EXPERIMENT_TEXT: Final = cases.FILES[EXPERIMENT].split("gate:")[0] + POLICY
#: What every refusal of another policy says, and how to accept it.
SEALED: Final = ("not what the baseline was accepted under", "--update --reason")


@dataclass(frozen=True)
class Trick:
    """What is tried, and how the gate ends.

    Attributes:
        name: What is tried, for the table.
        edit: What is done to the project.
        code: The exit code.
        says: What the output must hold.
        arguments: Words of the command.
        environment: Variables of the environment.
    """

    name: str
    edit: Edit = nothing
    code: int = 2
    says: tuple[str, ...] = ()
    arguments: tuple[str, ...] = GATE
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def make_project(root: Path) -> Path:
    cases.make_project(root, mine=EXPERIMENT_TEXT)
    cases.renew_baseline(root)
    replaced(EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")(root)
    return root


def policy(old: str, new: str) -> Edit:
    return replaced(EXPERIMENT, old, new)


def max_drop(value: str) -> Edit:
    return policy("RR@10: {max_drop: 0.01}", f"RR@10: {{max_drop: {value}}}")


def lines(name: str, change: Callable[[list[str]], list[str]]) -> Edit:
    def spoil(root: Path) -> None:
        path = root / name
        kept = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(change(kept)), encoding="utf-8")

    return spoil


def pattern(name: str, old: str, new: str) -> Edit:
    """Every match of a pattern replaced in a file."""

    def spoil(root: Path) -> None:
        path = root / name
        path.write_text(re.sub(old, new, path.read_text(encoding="utf-8")), encoding="utf-8")

    return spoil


def copied(source: str, target: str) -> Edit:
    """A file in the place of another one, with the time of that one."""

    def spoil(root: Path) -> None:
        before = (root / target).stat() if (root / target).exists() else None
        shutil.copyfile(root / source, root / target)
        if before is not None:
            os.utime(root / target, ns=(before.st_atime_ns, before.st_mtime_ns))

    return spoil
