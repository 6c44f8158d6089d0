"""Objects as JSON Lines: one a line, letters as they are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


def encode_json_lines(objects: Iterable[Mapping[str, Any]]) -> bytes:
    """The objects in UTF-8, each on a line that ends with a line feed.

    Half of a surrogate pair, which UTF-8 cannot hold, becomes its escape: JSON reads it as the
    same.
    """
    text = "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects)
    return text.encode(errors="backslashreplace")
