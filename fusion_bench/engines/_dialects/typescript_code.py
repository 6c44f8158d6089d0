"""TypeScript for an engine: its constants, as JSON, and reading them back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fusion_bench.errors import ConfigError

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
    if name not in files:
        raise ConfigError(f"no file {name} (given: {', '.join(files) or 'none'})")
    return {key: json.loads(value) for key, value in CONSTANT.findall(files[name])}
