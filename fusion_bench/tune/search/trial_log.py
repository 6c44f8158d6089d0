"""The log of a search: an append-only file with one line a finished trial.

The first line identifies the search. A batch is written and flushed to disk before the next one is
asked for, so a killed process loses no finished trial; an incomplete last line is removed when the
file is read again. A resumed search runs its sampler again and looks up the values here.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError, DataError

TrialOrigin: TypeAlias = Literal["default", "seed", "sampler"]
#: Of the file's layout.
VERSION = 1


@dataclass(frozen=True)
class Trial:
    """One evaluated parameter set.

    Attributes:
        number: Counted from 0.
        params: Path → value.
        value: Mean of the measure over the tuning queries; NaN = could not be computed.
        origin: ``default``, ``seed`` (a preset of the methods) or ``sampler``.
    """

    number: int
    params: Params
    value: float
    origin: TrialOrigin

    @property
    def is_failed(self) -> bool:
        """Whether it could not be computed."""
        return math.isnan(self.value)


def params_key(params: Params) -> str:
    """The parameters as a string."""
    return json.dumps(dict(params), sort_keys=True)


class TrialLog:
    """The finished trials of one search, on disk.

    Args:
        path: The file; made with its folder if need be.
        identity: Of the search: settings, space and data.

    Raises:
        ConfigError: The file belongs to another search.
        DataError: A line that is no trial, other than the last.
    """

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self._known: dict[str, float] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read_file(identity)
        if not path.exists() or path.stat().st_size == 0:
            self._append_lines([json.dumps({"version": VERSION, "search": identity})])

    def __len__(self) -> int:
        return len(self._known)

    def find_value(self, params: Params) -> float | None:
        """The logged value; None = it is not there."""
        return self._known.get(params_key(params))

    def add_trials(self, trials: Sequence[Trial]) -> None:
        """Write finished trials and wait until the disk has them."""
        new = [trial for trial in trials if params_key(trial.params) not in self._known]
        self._known |= {params_key(trial.params): trial.value for trial in new}
        if new:
            self._append_lines([_format_trial(trial) for trial in new])

    def _append_lines(self, lines: Sequence[str]) -> None:
        with self.path.open("ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())

    def _read_file(self, identity: str) -> None:
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # the process was killed while it wrote this line
            os.truncate(self.path, len(whole))
        for number, line in enumerate(whole.decode(errors="replace").splitlines(), 1):
            self._parse_line(number, line, identity)

    def _parse_line(self, number: int, line: str, identity: str) -> None:
        try:
            record = json.loads(line)
            if number > 1:
                value = record["value"]
                self._known[params_key(record["params"])] = (
                    math.nan if value is None else float(value)
                )
                return
            version, search = record["version"], record["search"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError(
                f"{self.path}:{number}: not a line of a trial log: move the file away"
            ) from None
        if (version, search) != (VERSION, identity):
            raise ConfigError(
                f"{self.path}: belongs to another search (the space, the data, the sampler, the "
                "seed or the batch is not the same): choose another --out, or move the file away"
            )


def _format_trial(trial: Trial) -> str:
    return json.dumps(
        {
            "number": trial.number,
            "origin": trial.origin,
            "value": None if trial.is_failed else trial.value,
            "params": dict(trial.params),
        }
    )
