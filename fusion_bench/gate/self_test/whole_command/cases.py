"""Made projects at the edges of the rule, and ones that every rule must answer alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fusion_bench.gate.self_test.whole_command.project import MadeProject
from fusion_bench.gate.self_test.whole_command.slow_rule import SlowCheck

RR, HIT = "RR@10", "Success@5"
#: How far a tolerance stands from the edge of a decision, relative to it.
STEP = 0.03


@dataclass(frozen=True)
class MadeCase:
    """A project, and what the answer must be whatever the rule's formula says.

    Attributes:
        name: What is tried.
        project: The two lists and the policy.
        exit_code: The only right exit code; None = the slow rule says.
        never: Statuses that no check may have.
    """

    name: str
    project: MadeProject
    exit_code: int | None = None
    never: frozenset[str] = field(default=frozenset())


def make_cases() -> Iterator[MadeCase]:
    """Every case."""
    yield from _certain_cases()
    yield from _few_losses()
    yield from _bounds()
    yield from _policies()


def _case(
    name: str,
    before: Sequence[int],
    after: Sequence[int],
    max_drop: float,
    *,
    exit_code: int | None = None,
    never: Sequence[str] = (),
    groups: Sequence[str] = (),
    measures: Sequence[str] = (RR,),
    **policy: Any,  # noqa: ANN401 - keys of ``gate:``
) -> MadeCase:
    checks = {measure: {"max_drop": max_drop} for measure in measures}
    project = MadeProject(before, after, {"checks": checks, **policy}, groups)
    return MadeCase(name, project, exit_code, frozenset(never))


def _certain_cases() -> Iterator[MadeCase]:
    """Cases whose answer needs no formula."""
    first, half = [1] * 100, [1] * 60 + [2] * 40
    accepted = ("unchanged", "pass", "pass on these queries")
    yield _case("identical lists", first, first, 0.01, exit_code=0)
    yield _case("40 of 100 queries lose a half", first, half, 0.01, exit_code=1, never=accepted)
    alarms = ("fell", "regressed", "unchanged", "inconclusive")
    yield _case("40 of 100 queries win a half", half, first, 0.01, exit_code=0, never=alarms)
    some, fewer = [1] * 50 + [2] * 50, [1] * 5 + [0] * 45 + [2] * 50
    yield _case("45 of 100 queries lose all", some, fewer, 0.02, exit_code=1, never=accepted)
    before = [1] * 91 + [0] * 4 + [1] * 5
    after = [1] * 95 + [0] * 5
    yield _case("5 lost, 4 won of 100", before, after, 0.005, exit_code=3, never=("fell",))
    teams = [f"team{i // 10}" for i in range(100)]
    lost = [0] * 30 + [1] * 70
    yield _case(
        "3 of 10 groups lose all", first, lost, 0.01, groups=teams, exit_code=3, never=("fell",)
    )


def _few_losses() -> Iterator[MadeCase]:
    """Sign flips can be listed: p = 2^−k where k queries lose, and Holm multiplies."""
    first = [1] * 100
    for lost in (4, 5, 6, 7, 8):
        after = [0] * lost + [1] * (100 - lost)
        yield _case(f"{lost} of 100 queries lose all", first, after, 0.005)
        yield _case(f"{lost} lose all, two measures", first, after, 0.005, measures=(RR, HIT))
    for won in (1, 2):
        after = [0] * 8 + [1] * (92 - won) + [1] * won
        before = [1] * (100 - won) + [0] * won
        yield _case(f"8 of 100 queries lose all, {won} win all", before, after, 0.005)
    yield _case("2 of 400 queries lose all", [1] * 400, [0] * 2 + [1] * 398, 0.004, never=("pass",))


def _bounds() -> Iterator[MadeCase]:
    """Tolerances just inside and outside of each bound."""
    before = [1] * 18 + [2] * 12 + [1] * 270
    after = [2] * 18 + [1] * 12 + [1] * 270
    differences = [-0.5] * 18 + [0.5] * 12 + [0.0] * 270
    edge = -SlowCheck(differences, 0.0).t_bound
    for share in (1 - STEP, 1 + STEP):
        yield _case(f"m = {share:g} × the t bound", before, after, round(edge * share, 6))
    before, after = [9] * 20 + [1] * 780, [10] * 20 + [1] * 780
    small = [1 / 10 - 1 / 9] * 20 + [0.0] * 780
    edge = _betting_edge(small)
    for share in (1 - STEP, 1 + STEP):
        yield _case(f"m = {share:g} × the betting bound", before, after, round(edge * share, 6))
    before, after = [1] * 100, [2] * 12 + [1] * 88
    lost = SlowCheck([-0.5] * 12 + [0.0] * 88, 0.0)
    edge = -lost.mean - (lost.mean - lost.t_bound)  # mean + t·se = −m
    for share in (1 - STEP, 1 + STEP):
        yield _case(f"m = {share:g} × the regression's edge", before, after, round(edge * share, 6))


def _betting_edge(differences: Sequence[float]) -> float:
    """The tolerance at which the bet is just won."""
    low, high = 0.0, 0.5
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if SlowCheck(differences, middle).is_bet_won else (middle, high)
    return high


def _policies() -> Iterator[MadeCase]:
    """What blocks, and guards on single queries."""
    first = [1] * 200
    guards = [{"measure": RR, "max_loss": 0.5, "max_share": 0.01}]
    for lost, code in ((2, 0), (3, 1)):
        after = [0] * lost + [1] * (200 - lost)
        name = f"a guard with {lost} of 200 queries lost, 1 % allowed"
        yield _case(name, first, after, 0.9, exit_code=code, guards=guards)
    few = [0] * 3 + [1] * 197
    many = [2] * 40 + [1] * 160
    for word, code in (("warn", 0), ("block", 3)):
        name = f"inconclusive: {word}"
        yield _case(name, first, few, 0.01, exit_code=code, inconclusive=word)
    yield _case("regressed, where fell warns", first, many, 0.01, exit_code=1, fell="warn")
    for word, code in (("warn", 0), ("block", 1)):
        after = [0] * 8 + [1] * 192
        yield _case(f"fell: {word}", first, after, 0.03, exit_code=code, fell=word)
    small = [2] * 2 + [1] * 198
    for word, code in (("pass", 0), ("block", 3)):
        name = f"small_changes: {word}"
        yield _case(name, first, small, 0.012, exit_code=code, small_changes=word)
