"""The lines of a log of trials: what each holds, and how it is checked when it is read again.

Format history:
    1   first version
    2   the first line has the parts of the search's fingerprint; each line ends with a digest
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

from fusion_bench.config.parameters import Params
from fusion_bench.data.fingerprint import Fingerprint
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.util.digests import strip_line_digest

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
