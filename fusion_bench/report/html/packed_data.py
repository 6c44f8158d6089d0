"""Plain data as text that stands safely in any place of an HTML page."""

from __future__ import annotations

import base64
import gzip
import json

#: Level 6 takes three times as long and saves 7 %.
LEVEL = 4


def pack_json(data: object) -> str:
    """JSON, compressed by gzip, in Base64: letters, digits, ``+``, ``/`` and ``=`` only.

    The same data give the same text.

    Raises:
        ValueError: A number is NaN or infinite.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode("ascii"), LEVEL, mtime=0)).decode("ascii")
