"""Plain data as YAML for people: keys in their order, letters as they are."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import yaml

#: Columns of a line, where a text has a blank to break it at.
WIDTH: Final = 100


def format_yaml(data: Any, *, width: int = WIDTH) -> str:  # noqa: ANN401 - whatever YAML has
    """The data as YAML, one key a line, with a line feed at the end."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=width)
    return text


def format_compact_yaml(data: Mapping[str, Any]) -> str:
    """Plain data of JSON's kinds as YAML, with each innermost mapping or list on one line."""
    separate = json.loads(json.dumps(data))  # YAML would write shared lists as aliases
    text: str = yaml.safe_dump(
        separate, default_flow_style=None, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text
