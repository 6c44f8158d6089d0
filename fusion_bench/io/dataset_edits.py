"""New entries of a ``dataset.yaml``: lines are added; comments and the order of keys stay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import format_flow_yaml
from fusion_bench.config.yaml_values import parse_yaml
from fusion_bench.errors import ConfigError
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.util.files import write_atomic

#: Keys whose values are entries by name.
SECTIONS: Final = frozenset({"judges", "rerank", "runs"})


def format_entry(name: str, value: object) -> str:
    """An entry in one line."""
    return format_flow_yaml({name: value}).removeprefix("{").removesuffix("}")


def add_entries(path: Path, changes: Mapping[str, Any]) -> str | None:
    """The text of a ``dataset.yaml`` with more in it; None = a line has no place.

    Args:
        path: The ``dataset.yaml``.
        changes: Key → value; of ``judges``, ``rerank`` and ``runs`` what is added, by name.
    """
    with path.open(encoding="utf-8", newline="") as file:
        text: str | None = file.read()
    known = _load(text or "")
    expected: dict[str, Any] = dict(known) if isinstance(known, dict) else {}
    for key, value in changes.items():
        if key in SECTIONS:
            expected[key] = {**(expected.get(key) or {}), **value}
            lines = [(key, format_entry(name, entry)) for name, entry in value.items()]
        else:
            expected[key] = value
            lines = [("", format_entry(key, value))]
        for section, line in lines:
            text = None if text is None else _insert_line(text, section, line)
    return text if text is not None and _load(text) == expected else None


def name_in_dataset(path: Path, changes: Mapping[str, Any]) -> bool:
    """Add entries to a ``dataset.yaml``; False where one does not fit, and nothing is written.

    Args:
        path: The ``dataset.yaml``.
        changes: As for :func:`add_entries`.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    text = add_entries(path, changes)
    if text is None:
        return False
    try:
        parse_model(DatasetSpec, parse_yaml(text), str(path))
    except ConfigError:
        return False
    write_atomic(path, text.encode())
    return True


def _load(text: str) -> object:
    try:
        return parse_yaml(text)
    except yaml.YAMLError:
        return None


def _insert_line(text: str, section: str, line: str) -> str | None:
    """A YAML text with one more line below a key; None = it is not written as a block."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    if not section:
        return "".join([*lines, f"{line}{end}"])
    entries = [(key, value) for key, value in pairs if key.value == section]
    if not entries:
        return "".join([*lines, f"{section}:{end}", f"  {line}{end}"])
    key, value = entries[0]
    if isinstance(value, yaml.ScalarNode) and not value.value:
        at, indent = key.start_mark.line + 1, key.start_mark.column + 2
    elif isinstance(value, yaml.MappingNode) and not value.flow_style:
        at, indent = _last_line(value) + 1, value.value[0][0].start_mark.column
    else:
        return None
    return "".join([*lines[:at], f"{' ' * indent}{line}{end}", *lines[at:]])


def _last_line(node: yaml.Node) -> int:
    """Index of the line on which a value ends; the mark of a block is behind what follows it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line)
