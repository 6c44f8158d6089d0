"""YAML files: read with the line of each value; written for people.

The parser is imported where a text is read or written: a comparison of lists in memory needs none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from fusion_bench.config.models import Location
from fusion_bench.errors import ConfigError, did_you_mean
from fusion_bench.util.files import explain_error, open_regular_text
from fusion_bench.util.formatting import pluralize

#: Columns of a line, where a text has a blank to break it at.
WIDTH: Final = 100


def format_yaml(data: Any, *, width: int = WIDTH) -> str:  # noqa: ANN401 - whatever YAML has
    """The data as YAML, one key a line, with a line feed at the end."""
    import yaml  # late, as above

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=width)
    return text


def format_compact_yaml(data: Mapping[str, Any]) -> str:
    """Plain data of JSON's kinds as YAML, with each innermost mapping or list on one line."""
    import yaml  # late, as above

    separate = json.loads(json.dumps(data))  # YAML would write shared lists as aliases
    text: str = yaml.safe_dump(
        separate, default_flow_style=None, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text


def format_flow_yaml(data: Any, *, sort_keys: bool = False) -> str:  # noqa: ANN401 - as above
    """The data as YAML on one line, without a line feed."""
    import yaml  # late, as above

    text: str = yaml.safe_dump(
        data, default_flow_style=True, sort_keys=sort_keys, allow_unicode=True, width=math.inf
    )
    return text.removesuffix("...\n").strip()


#: Characters of a YAML file, far above any that is written by hand.
MOST_CHARACTERS: Final = 2_000_000


@dataclass(frozen=True, repr=False)
class Source:
    """Parsed YAML and where each of its values stands.

    Attributes:
        path: The file.
        data: Its content.
        lines: 1-based line of each key or item, by its path.
        overrides: Path of a value that replaces the file's → the option that set it, such as
            ``systems.rrf.fusion.k=20``.
        options: Path of a value that an option of its own set → that option, such as ``--split``.
    """

    path: Path
    data: Any
    lines: Mapping[Location, int] = field(default_factory=dict)
    overrides: Mapping[Location, str] = field(default_factory=dict)
    options: Mapping[Location, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """The file, and how much stands there."""
        changed = f", {pluralize(len(self.overrides), 'override')}" if self.overrides else ""
        return f"Source({str(self.path)!r}, {pluralize(len(self.data), 'entry')}{changed})"

    def where(self, location: Location) -> str:
        """``file:line: path`` of a value, by the deepest known part of its path.

        A value that an option set has ``--set path``, or the option's own name.
        """
        if location in self.options:
            return self.options[location]
        path = ".".join(map(str, location))
        for place in self.overrides:
            is_inside = location[: len(place)] == place
            is_above = place[: len(location)] == location and location not in self.lines
            if is_inside or (is_above and location):  # the option made the mapping that it is
                return f"--set {path}"
        known = [location[:n] for n in range(len(location), 0, -1) if location[:n] in self.lines]
        line = f":{self.lines[known[0]]}" if known else ""
        return f"{self.path}{line}: {path}" if path else f"{self.path}{line}"

    def with_options(self, options: Mapping[Location, str]) -> Source:
        """The source, with options that set some of its values: path → option."""
        return replace(self, options={**self.options, **options})

    @property
    def override_texts(self) -> tuple[str, ...]:
        """The options that replace values, each once."""
        return tuple(dict.fromkeys(self.overrides.values()))


def read_yaml(path: Path) -> Source:
    """Read a YAML file safely.

    Raises:
        ConfigError: No such file, not YAML, a repeated key, or not a mapping at the top.
    """
    try:
        with open_regular_text(path) as file:
            text = file.read(MOST_CHARACTERS + 1)
    except FileNotFoundError:
        # YAML files with a similar name, in the same folder or among the experiments.
        folders = dict.fromkeys([path.parent, Path("experiments")])
        files = [file for folder in folders for file in sorted(folder.glob("*.y*ml"))]
        by_stem = {file.stem: str(file) for file in reversed(files)}
        close = did_you_mean(path.stem if path.suffix in {".yaml", ".yml"} else path.name, by_stem)
        for stem, name in by_stem.items():
            close = close.replace(repr(stem), repr(name))
        raise ConfigError(f"{path}: no such file{close or ': check the path'}") from None
    except (OSError, ValueError) as error:  # a folder, not UTF-8, or a path with a null byte
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {explain_error(error)}") from None
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{path}: longer than {MOST_CHARACTERS:,} characters: is it the right file?"
        )
    from fusion_bench.config.yaml_values import load_document  # late, as above

    data, lines = load_document(path, text)
    if not isinstance(data, dict):
        given = "nothing" if data is None else f"a {type(data).__name__}"
        raise ConfigError(f"{path}: a mapping of keys to values is needed, given {given}")
    return Source(path, data, lines)
