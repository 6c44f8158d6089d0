"""Files of prompts: templates with named fields."""

from __future__ import annotations

import string
from pathlib import Path

from fusion_bench.util.files.regular_files import read_regular_text


def read_prompt_file(path: Path, what: str) -> str:
    """The text of a file.

    Args:
        path: The file.
        what: What it holds, for messages, such as ``rubric``.

    Raises:
        ValueError: It cannot be read.
    """
    try:
        return read_regular_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        problem = f"{path}: the {what} cannot be read ({reason}): name a text file"
        raise ValueError(problem) from None


def list_fields(text: str, path: Path, advice: str) -> list[tuple[str, str, str | None]]:
    """The name, layout and conversion of each field of a template.

    Args:
        text: The template.
        path: Its file.
        advice: What a template looks like, for the message.

    Raises:
        ValueError: It is no template.
    """
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"{path}: {error}: {advice}") from None
    return [
        (name, layout or "", conversion)
        for _, name, layout, conversion in parts
        if name is not None
    ]
