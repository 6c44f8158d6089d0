"""Refuses an option whose file would replace what the command reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from fusion_bench.errors import ConfigError
from fusion_bench.util.files.real_paths import resolve_path


def refuse_replaced_inputs(
    outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]
) -> None:
    """Check before the work begins that no output is an input.

    Args:
        outputs: Option → its file; None = not given.
        inputs: Files and folders that the command reads.

    Raises:
        ConfigError: An output is one of them, or lies in one of them.
    """
    files = {option: resolve_path(path) for option, path in outputs.items() if path is not None}
    if not files:
        return
    for path in filter(None, inputs):
        for option, file in files.items():
            if file.is_relative_to(resolve_path(path)):
                raise ConfigError(
                    f"{option}: {outputs[option]} would replace an input of this command: name "
                    "another file"
                )
