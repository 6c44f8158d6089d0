"""The trials of a search, with their log: an append-only file with one line a trial.

Format history:
    1   first version
    2   the first line has the parts of the search's fingerprint; each line ends with a digest

The first line holds the fingerprint of the search, and every line a digest of itself and of the
first. A batch is written and flushed to disk before the next one is asked for, so a killed process
loses no finished trial; an incomplete last line is removed when the file is read again. A resumed
search runs its sampler again and looks up the values here.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.util.digests import add_line_digest, strip_line_digest
from fusion_bench.util.file_paths import make_output_folder
from fusion_bench.util.files import append_whole, read_regular

VERSION = 2
#: A mean of values may exceed the measure's limits by rounding.
ROUNDING = 1e-9
#: Of a measure whose limits are not known.
UNLIMITED = (-sys.float_info.max, sys.float_info.max)


def describe_search(identity: Fingerprint) -> dict[str, Any]:
    """The first line of the log of a search, without its digest."""
    return {"version": VERSION, "parts": dict(identity.parts), "rows": dict(identity.rows)}


def refuse_other_search(line: str, path: Path, identity: Fingerprint) -> None:
    """Check the first line of a log.

    Args:
        line: The line.
        path: The file.
        identity: Of the search that is to go on from it.

    Raises:
        ConfigError: It belongs to another search, says which part differs; or an earlier version
            wrote it.
        DataError: It is no such line, or was edited.
    """
    text = strip_line_digest(line, "")
    if text is None:
        if _is_earlier_version(line):
            raise ConfigError(
                f"{path}:1: an earlier version wrote this log, without what its values depend on: "
                f"search again: delete it (rm {shlex.quote(str(path))}), and run the same command"
            )
        _refuse_line(f"{path}:1", "move the file away")
    head = _parse_json(text, f"{path}:1")
    try:
        earlier = Fingerprint(head["parts"], head["rows"])
        changes = earlier != identity and identity.summarize_changes(earlier)
    except (KeyError, TypeError, AttributeError):
        _refuse_line(f"{path}:1", "move the file away")
    if changes:
        raise ConfigError(
            f"{path}: belongs to another search ({changes}): choose another --out, or move the "
            "file away"
        )


def read_trial(
    line: str, where: str, head: str, limits: tuple[float, float]
) -> tuple[Params, float]:
    """The parameters and the value of one line; NaN = could not be computed.

    Args:
        line: The line.
        where: File and number of the line.
        head: Digest of the search.
        limits: Least and greatest value of the measure.

    Raises:
        DataError: It was edited, or its value is none of the measure.
    """
    remedy = "delete the line, and its trial is evaluated again"
    text = strip_line_digest(line, head)
    if text is None:
        _refuse_line(where, remedy)
    record = _parse_json(text, where)
    try:
        params, value = dict(record["params"]), record["value"]
    except (KeyError, TypeError, ValueError):
        _refuse_line(where, remedy)
    if value is None:
        return params, math.nan
    low, high = limits
    if type(value) not in {int, float} or not low - ROUNDING <= value <= high + ROUNDING:
        raise DataError(
            f"{where}: value {str(value)[:20]!r}: the measure's values lie in [{low:g}, {high:g}]: "
            f"{remedy}"
        )
    return params, float(value)


def _parse_json(text: str, where: str) -> dict[str, Any]:
    """The object of a line whose digest is right."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        _refuse_line(where, "move the file away")
    if not isinstance(record, dict):
        _refuse_line(where, "move the file away")
    return record


def _refuse_line(where: str, remedy: str) -> NoReturn:
    raise DataError(
        f"{where}: not as a search wrote it (its digest does not match: it was edited or damaged): "
        f"restore the file, or {remedy}"
    )


def _is_earlier_version(line: str) -> bool:
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(head, dict) and head.get("version") == 1 and "search" in head


TrialOrigin: TypeAlias = Literal["default", "seed", "sampler", "frozen"]


@dataclass(frozen=True)
class Trial:
    """One evaluated parameter set.

    Attributes:
        number: Counted from 0.
        params: Path → value.
        value: Mean of the measure over the tuning queries; NaN = could not be computed.
        origin: ``default``, ``seed`` (a preset of the methods), ``sampler``, or ``frozen`` by a
            plan of looks.
    """

    number: int
    params: Params
    value: float
    origin: TrialOrigin

    @property
    def is_failed(self) -> bool:
        """Whether it could not be computed."""
        return math.isnan(self.value)


class TrialLog:
    """The trials of one search, in memory and on disk.

    Args:
        path: The file; made with its folder if need be. None = in memory only.
        identity: Of the search: settings, space and data.
        limits: Least and greatest value of the measure.

    Attributes:
        trials: Those of this process, in the order of their numbers.

    Raises:
        ConfigError: The file belongs to another search, or an earlier version wrote it.
        DataError: A line that is no trial, other than the last, or that was edited.
    """

    def __init__(
        self,
        path: Path | None = None,
        identity: Fingerprint | None = None,
        limits: tuple[float, float] = UNLIMITED,
    ) -> None:
        self.trials: list[Trial] = []
        self._path = path
        self._values: dict[str, float] = {}
        self._head = ""
        if path is not None:
            make_output_folder(path.parent)
            path.touch()
            self._read_file(path, identity or Fingerprint({}), limits)

    def __len__(self) -> int:
        return len(self._values)

    def evaluate_params(
        self, objective: TuningObjective, batch: Sequence[Params], origin: TrialOrigin
    ) -> list[Trial]:
        """Evaluate what is not logged yet, and wait until the disk has it."""
        keys = [_params_key(params) for params in batch]
        new = {key: p for key, p in zip(keys, batch, strict=True) if key not in self._values}
        means = objective.evaluate_params(list(new.values())).mean(axis=1).tolist() if new else []
        self._values |= dict(zip(new, means, strict=True))
        numbered = enumerate(zip(keys, batch, strict=True), len(self.trials))
        done = [Trial(n, dict(params), self._values[key], origin) for n, (key, params) in numbered]
        self.trials += done  # before the file, so that Ctrl-C between the two loses nothing
        self._append_records(
            [
                {
                    "number": trial.number,
                    "origin": origin,
                    "value": None if trial.is_failed else trial.value,
                    "params": trial.params,
                }
                for key, trial in zip(keys, done, strict=True)
                if key in new
            ]
        )
        return done

    def _append_records(self, records: Sequence[object]) -> None:
        if self._path is not None and records:
            texts = (json.dumps(record, separators=(",", ":")) for record in records)
            lines = [add_line_digest(text, self._head) for text in texts]
            append_whole(self._path, "".join(f"{line}\n" for line in lines).encode())

    def _read_file(self, path: Path, identity: Fingerprint, limits: tuple[float, float]) -> None:
        data = read_regular(path)
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # the process was killed while it wrote this line
            os.truncate(path, len(whole))
        head, *lines = whole.decode(errors="replace").split("\n")
        if head:
            refuse_other_search(head, path, identity)
        else:
            self._append_records([describe_search(identity)])
        self._head = identity.digest
        for number, line in enumerate(lines[:-1], 2):
            params, value = read_trial(line, f"{path}:{number}", self._head, limits)
            self._values[_params_key(params)] = value


def _params_key(params: Params) -> str:
    """The parameters as a string."""
    return json.dumps(dict(params), sort_keys=True)
