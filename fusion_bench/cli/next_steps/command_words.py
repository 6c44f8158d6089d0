"""Commands as text, quoted for a shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import join


def format_command(
    *words: object, datasets: Sequence[Path] | None = None, overrides: Sequence[str] | None = None
) -> str:
    """A ``fusion-bench`` command, quoted for a shell.

    Args:
        words: The command and its arguments.
        datasets: Folders of named datasets.
        overrides: Values of the experiment that ``--set`` replaced.
    """
    options = list_words({"--datasets": datasets, "--set": overrides})
    return join(str(word) for word in ("fusion-bench", *words, *options))


def list_words(options: Mapping[str, Sequence[object] | None]) -> list[object]:
    """The words of options: each value after its option."""
    return [
        word for name, values in options.items() for value in values or () for word in (name, value)
    ]


def format_explain(
    *ids: str,
    experiment: Path,
    datasets: Sequence[Path] | None,
    overrides: Sequence[str] | None,
    **names: str | None,
) -> str:
    """The command that explains a query, or a document of it.

    Args:
        ids: Of the query and the document. None that begins with ``-`` is read as an option.
        experiment: Its file.
        datasets: As for :func:`format_command`.
        overrides: Likewise.
        names: The system and the dataset; None = not named.
    """
    named = {f"--{option}": [name] for option, name in names.items() if name is not None}
    options = list_words(
        {"--experiment": [experiment], **named, "--datasets": datasets, "--set": overrides}
    )
    if any(name.startswith("-") for name in ids):
        return format_command("explain", *options, "--", *ids)
    return format_command("explain", *ids, *options)
