"""TypeScript for an engine: its constants, as JSON, and reading them back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fusion_bench.engines._dialects.configuration import read_file

CONSTANT = re.compile(r"^export const (\w+): [^=]+ = (.+);$", re.MULTILINE)


def write_constants(constants: Mapping[str, tuple[str, Any]]) -> str:
    """One exported constant a line.

    Args:
        constants: Name → its type and its value.
    """
    return "".join(
        f"export const {name}: {kind} = {json.dumps(value, allow_nan=False)};\n"
        for name, (kind, value) in constants.items()
    )


def read_constants(files: Mapping[str, str], name: str) -> dict[str, Any]:
    """Name → value of what :func:`write_constants` wrote.

    Raises:
        ConfigError: There is no such file.
        ValueError: A value is no JSON.
    """
    return {key: json.loads(value) for key, value in CONSTANT.findall(read_file(files, name))}
