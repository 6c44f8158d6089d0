"""Names of files that are made from titles and from names of a user."""

from __future__ import annotations

import re

#: Longer parts of a file name are cut.
MAX_NAME_LENGTH = 60


def make_safe_name(text: str) -> str:
    """A part of a file name: letters, digits and few marks, so no path and no hidden file."""
    kept = re.sub(r"[^A-Za-z0-9@._-]+", "-", text)
    kept = re.sub(r"-*@-*", "@", kept).strip("-.")
    return kept[:MAX_NAME_LENGTH].strip("-.") or "unnamed"
