"""Runs whose condition no query meets, or every query does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.removed_sources import remove_sources
from fusion_bench.fuse import Trainable
from fusion_bench.lint._base import Problem
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend


def check_switches(subject: Subject) -> Iterator[Problem]:
    """The conditions of the system's runs that change nothing on the dataset."""
    facts = subject.dataset
    if facts is None or isinstance(subject.system.fusion, Trainable):
        return
    for i, name in enumerate(subject.system.runs):
        switch = facts.switches.get(name)
        if switch is None or name not in subject.sources or 0 < switch.on < switch.queries:
            continue
        if switch.on:
            message = (
                f"when of run {name} has no effect: every query of {facts.name} meets "
                f"({switch.condition})"
            )
        else:
            message = (
                f"run {name} has no effect: it is on where ({switch.condition}), and no query of "
                f"{facts.name} is"
            )
        build = partial(_build_witness, subject, name, is_on=switch.on > 0)
        yield Problem(message, ("runs", i), build, of_whole=True)


def _build_witness(subject: Subject, run: str, *, is_on: bool) -> Witness:
    """The same list comes out without the condition, or without the run."""
    system, names = without_blend(subject.system), subject.system.runs
    other = system
    if not is_on:
        with suppress(ConfigError):  # a fusion that needs the run is compared with nothing
            other = remove_sources(system, [run], [subject.roles_of(name) for name in names])
    answering = [name for name in names if is_on or name != run] or list(names)
    ranks = {f"d{i}": {name: 1 + (i + s) % 3 for s, name in enumerate(answering)} for i in range(3)}
    return Witness(
        system,
        f"{run} is on for every query" if is_on else f"{run} is off for every query",
        rank_lists(ranks),
        same_as=other,
        dataset=subject.dataset,
        off=frozenset() if is_on or other is system else frozenset({run}),
    )
