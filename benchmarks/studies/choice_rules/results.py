"""The results of the worlds: one file a collection, written whole, so that a run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fusion_bench.util.files import write_atomic

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Outcome:
    """What a rule made of a world.

    Attributes:
        rule: Its key.
        ships: Whether the default was to be replaced.
        setting: The choice's place in the grid.
        claimed: The gain that was printed.
        truth: The true gain.
        verdict: Of ours; empty for others.
    """

    rule: str
    ships: bool
    setting: int
    claimed: float
    truth: float
    verdict: str = ""


@dataclass(frozen=True)
class WorldResult:
    """All rules on one world.

    Attributes:
        kind: ``null``, ``null over the pool``, ``planted .02``, ``planted .05`` or ``unseen half``.
        number: Of the world among those of its kind.
        best: The greatest true gain of any setting.
        level: Mean nDCG@10 of the default.
        seconds: CPU seconds of the world and its rules.
        outcomes: One a rule.
    """

    kind: str
    number: int
    best: float
    level: float
    seconds: float
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class PairResult:
    """All worlds of a collection.

    Attributes:
        name: Of the collection.
        lists: The names of its two lists.
        queries: How many take part.
        groups: How many groups they have.
        contenders: Mean number of candidates that some setting ranks in its first ten.
        worlds: In the order in which they were made.
    """

    name: str
    lists: tuple[str, ...]
    queries: int
    groups: int
    contenders: float
    worlds: tuple[WorldResult, ...]

    def numbers(self, kind: str) -> set[int]:
        """The numbers of the worlds of a kind."""
        return {world.number for world in self.worlds if world.kind == kind}

    def outcomes(self, kind: str, rule: str) -> list[tuple[WorldResult, Outcome]]:
        """What a rule made of each world of a kind."""
        return [
            (world, outcome)
            for world in self.worlds
            if world.kind == kind
            for outcome in world.outcomes
            if outcome.rule == rule
        ]


def write_result(result: PairResult, folder: Path = RESULTS) -> None:
    """Write all worlds of a collection, a line a world."""
    head = {key: value for key, value in vars(result).items() if key != "worlds"}
    worlds = ",\n".join(json.dumps(_pack_world(world)) for world in result.worlds)
    text = f'{json.dumps(head)[:-1]}, "worlds": [\n{worlds}\n]}}\n'
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / f"{result.name}.json", text.encode())


def read_results(folder: Path = RESULTS) -> list[PairResult]:
    """The results of every collection, by name."""
    return [read_result(path) for path in sorted(folder.glob("*.json"))]


def read_result(path: Path) -> PairResult:
    """The results of one collection."""
    data = json.loads(path.read_text(encoding="utf-8"))
    worlds = tuple(_unpack_world(each) for each in data.pop("worlds"))
    return PairResult(**{**data, "lists": tuple(data["lists"])}, worlds=worlds)


def _pack_world(world: WorldResult) -> dict[str, Any]:
    """With rules in a table: their keys stand once, and floats have six decimal places."""
    rules = {
        each.rule: [int(each.ships), each.setting, round(each.claimed, 6), round(each.truth, 6)]
        for each in world.outcomes
    }
    [ours] = [each for each in world.outcomes if each.verdict]
    head = {"kind": world.kind, "number": world.number, "best": round(world.best, 6)}
    head |= {"level": round(world.level, 6), "seconds": round(world.seconds, 2)}
    return head | {"verdict": ours.verdict, "rules": rules}


def _unpack_world(data: dict[str, Any]) -> WorldResult:
    *others, (ours, last) = data.pop("rules").items()
    verdict, _ = data.pop("verdict"), data.pop("shrunken", None)  # of earlier versions
    outcomes = [_unpack_outcome(rule, cells) for rule, cells in others]
    outcomes.append(_unpack_outcome(ours, last, verdict))
    return WorldResult(**data, outcomes=tuple(outcomes))


def _unpack_outcome(rule: str, cells: Sequence[float], verdict: str = "") -> Outcome:
    ships, setting, claimed, truth = cells
    return Outcome(rule, bool(ships), int(setting), claimed, truth, verdict)
