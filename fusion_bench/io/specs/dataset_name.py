"""The name of a dataset, made from any text."""

from __future__ import annotations

import re


def make_dataset_name(text: str, default: str) -> str:
    """The text with dashes for what a name cannot hold, or the default where nothing is left."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-._+") or default
