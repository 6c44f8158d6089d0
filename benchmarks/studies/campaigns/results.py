"""The results of the study: four JSON files, a line a cell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.studies.campaigns.power import DetectableRow, PowerRow
from benchmarks.studies.campaigns.real_command import RealCampaign
from benchmarks.studies.campaigns.tails import TailRow
from fusion_bench.util.files import write_atomic

RESULTS: Final = Path(__file__).parent / "results"


@dataclass(frozen=True)
class CellResult:
    """What a cell's campaigns shipped.

    Attributes:
        data: Collection and measure, or ``made`` and the number of held-out queries.
        null: Its kind.
        proposer: Key.
        ships: Declared.
        campaigns: How many.
        asks: Declared.
        first: Rule → number of the ask of the first false ship of each campaign that has one.
    """

    data: str
    null: str
    proposer: str
    ships: int
    campaigns: int
    asks: int
    first: Mapping[str, Sequence[int]]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from the others."""
        return self.data, self.null, self.proposer


@dataclass(frozen=True)
class PowerResult:
    """What is found where some settings are better."""

    rows: tuple[PowerRow, ...] = ()
    detectable: tuple[DetectableRow, ...] = ()


def write_cells(cells: Sequence[CellResult], folder: Path = RESULTS) -> None:
    """Write all cells of the nulls."""
    _write(folder / "nulls.json", {"cells": [asdict(each) for each in cells]})


def read_cells(folder: Path = RESULTS) -> list[CellResult]:
    """The cells that are done."""
    stored = _read(folder / "nulls.json")
    return [CellResult(**each) for each in stored.get("cells", [])]


def write_power(result: PowerResult, folder: Path = RESULTS) -> None:
    """Write all rows of the power."""
    _write(folder / "power.json", asdict(result))


def read_power(folder: Path = RESULTS) -> PowerResult:
    """The rows that are done."""
    stored = _read(folder / "power.json")
    return PowerResult(
        tuple(PowerRow(**each | {"gain": tuple(each["gain"])}) for each in stored.get("rows", [])),
        tuple(DetectableRow(**each) for each in stored.get("detectable", [])),
    )


def write_tails(rows: Sequence[TailRow], folder: Path = RESULTS) -> None:
    """Write the exact probabilities."""
    _write(folder / "tails.json", {"rows": [asdict(each) for each in rows]})


def read_tails(folder: Path = RESULTS) -> list[TailRow]:
    """The exact probabilities that are done."""
    return [TailRow(**each) for each in _read(folder / "tails.json").get("rows", [])]


def write_real(campaigns: Sequence[RealCampaign], folder: Path = RESULTS) -> None:
    """Write the campaigns through the command."""
    _write(folder / "real.json", {"campaigns": [asdict(each) for each in campaigns]})


def read_real(folder: Path = RESULTS) -> list[RealCampaign]:
    """The campaigns through the command that are done."""
    stored = _read(folder / "real.json").get("campaigns", [])
    ships = ("ships", "replayed")
    return [RealCampaign(**each | {name: tuple(each[name]) for name in ships}) for each in stored]


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def _write(path: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """A line a row; floats with six decimal places."""
    parts = [
        f'"{name}": [\n' + ",\n".join(json.dumps(_round(row)) for row in rows) + "\n]"
        for name, rows in tables.items()
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, ("{" + ",\n".join(parts) + "}\n").encode())


def _round(value: object) -> object:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Mapping):
        return {key: _round(each) for key, each in value.items()}
    return value
