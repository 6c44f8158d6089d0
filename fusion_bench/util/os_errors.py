"""What the operating system refused, in words."""

from __future__ import annotations


def explain_error(error: BaseException) -> str:
    """Why something failed, without the number and the file that Python adds to an OSError."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error)
