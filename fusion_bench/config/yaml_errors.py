"""What is wrong with a YAML file, in words of who wrote it and not of the parser."""

from __future__ import annotations

from yaml import YAMLError


def line_of(error: Exception) -> int | None:
    """Index of the line that the parser stopped at; None = it does not say."""
    mark = getattr(error, "problem_mark", None)
    return None if mark is None else int(mark.line)


def plain_words(error: YAMLError | ValueError, text: str) -> str:
    """What the parser complains of.

    Args:
        error: What it raised.
        text: The whole file.
    """
    problem = str(getattr(error, "problem", None) or str(error).splitlines()[0])
    at = line_of(error)
    if at is None:
        return problem
    if "cannot start any token" in problem and "\\t" in problem:
        return "a tab stands where a line is indented or a value begins: use spaces"
    indents = _list_indents(text, at)
    if problem.startswith("expected <block end>"):
        return _badly_indented(indents)
    if problem.startswith("mapping values are not allowed"):
        quote = "quote a text that holds ': '"
        same = len(indents) < 2 or indents[-1][1] == indents[-2][1]
        return quote if same else f"{_badly_indented(indents)}, or {quote}"
    if problem.startswith("could not find expected ':'"):
        return "a key without ': ' and a value behind it, here or in the line above"
    if problem.startswith("expected ',' or"):
        return "a bracket or brace is not closed, or a comma is missing, here or in a line above"
    return problem


def _list_indents(text: str, at: int) -> list[tuple[int, int]]:
    """Line number and indent of every line with content up to index ``at``."""
    lines = text.splitlines()[: at + 1]
    filled = [(n, line) for n, line in enumerate(lines, 1) if line.split("#")[0].strip()]
    return [(n, len(line) - len(line.lstrip(" "))) for n, line in filled]


def _badly_indented(indents: list[tuple[int, int]]) -> str:
    """How a line is indented against those that it could belong to."""
    if len(indents) < 2 or indents[-1][1] == indents[-2][1]:
        return "this does not fit the lines above: check how they are indented"
    (_, indent), (above, last) = indents[-1], indents[-2]
    words = f"this line is indented by {indent}, line {above} by {last}"
    if indent < last:
        outer = next(((n, other) for n, other in reversed(indents[:-1]) if other < indent), None)
        words += f" and line {outer[0]} by {outer[1]}" if outer else ""
    return f"{words}: indent it like the keys that it belongs beside"
