"""Files of lists and judgments, written by a test."""

from pathlib import Path


def written(path: Path, content: str | bytes) -> Path:
    """The path, once the file holds the content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
