"""Plain data as YAML for people: keys in their order, letters as they are."""

from __future__ import annotations

from typing import Any, Final

import yaml

#: Columns of a line, where a text has a blank to break it at.
WIDTH: Final = 100


def format_yaml(data: Any, *, width: int = WIDTH) -> str:  # noqa: ANN401 - whatever YAML has
    """The data as YAML, one key a line, with a line feed at the end."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=width)
    return text
