"""Made projects at the edges of the rule, and ones that every rule must answer alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml

from fusion_bench.gate.self_test.whole_command.project import GATE, UPDATE, MadeProject

RR, HIT = "RR@10", "Success@5"
#: The cases; the file says what its keys mean.
STATED = files(__package__) / "cases.yaml"
#: What is gated, with which command: a list, or the first of its repeats.
STEPS = (("before", "update"), ("after", "gate"))
COMMANDS = {"update": UPDATE, "alone": UPDATE, "gate": GATE}


@dataclass(frozen=True)
class MadeCase:
    """A project, and what the answer must be whatever the rule's formula says.

    Attributes:
        name: What is tried.
        project: The lists and the policy.
        steps: The list that is gated, and a key of :data:`COMMANDS`, one after the other; the last
            one is judged.
        exit_code: The only right exit code; None = the slow rule says.
        statuses: The only right ones, in the order of the checks; empty = the slow rule says.
        never: Statuses that no check may have.
    """

    name: str
    project: MadeProject
    steps: Sequence[Sequence[str]] = STEPS
    exit_code: int | None = None
    statuses: Sequence[str] = ()
    never: Sequence[str] = ()


def make_cases() -> Iterator[MadeCase]:
    """Every case."""
    for entry in yaml.safe_load(STATED.read_text(encoding="utf-8")):
        yield _read_case(**entry)


def _read_case(
    *,
    name: str,
    lists: Mapping[str, Sequence[str]],
    policy: Mapping[str, Any],
    groups: str = "",
    types: str = "",
    steps: Sequence[Sequence[str]] = STEPS,
    right: Mapping[str, Any] = MappingProxyType({}),
    **judging: str,
) -> MadeCase:
    ranks = {key: [[*map(int, _expand(each))] for each in every] for key, every in lists.items()}
    project = MadeProject(ranks, policy, _expand(groups), _expand(types), **judging)
    return MadeCase(name, project, steps, **right)


def _expand(text: str) -> list[str]:
    """``1*2 0*1`` → 1, 1, 0."""
    pairs = (part.split("*") for part in text.split())
    return [value for value, count in pairs for _ in range(int(count))]
