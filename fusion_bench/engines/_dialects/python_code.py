"""Python for an engine: what all of it begins with, and reading it without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from fusion_bench.engines._dialects.configuration import most_results, read_file, windows_by_source
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System


def parse_python(files: Mapping[str, str], name: str) -> ast.Module:
    """The syntax tree of a file.

    Raises:
        ConfigError: There is no such file, or it is no Python.
    """
    text = read_file(files, name)
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{name}: no Python: {error}") from None


def find_calls(tree: ast.AST, *functions: str) -> list[tuple[str, dict[str, Any]]]:
    """Function and literal arguments of each call of one of the functions, in their order.

    Positional arguments are under ``"0"``, ``"1"``, …; of what is no literal, the name counts:
    ``HybridFusion.RANKED`` is ``"RANKED"``.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    matching = []
    for call in calls:
        function = call.func.attr if isinstance(call.func, ast.Attribute) else None
        if isinstance(call.func, ast.Name):
            function = call.func.id
        if function in functions:
            values = {str(i): _literal(value) for i, value in enumerate(call.args)}
            values |= {word.arg: _literal(word.value) for word in call.keywords if word.arg}
            matching.append((function, values))
    return matching


def find_call(tree: ast.AST, *functions: str) -> tuple[str, dict[str, Any]]:
    """The first of :func:`find_calls`.

    Raises:
        ValueError: There is none.
    """
    for call in find_calls(tree, *functions):
        return call
    raise ValueError(f"no call of {' or '.join(functions)}")


def _literal(value: ast.expr) -> Any:  # noqa: ANN401 - any literal
    if isinstance(value, ast.Attribute):
        return value.attr
    try:
        return ast.literal_eval(value)
    except ValueError:
        return None


def find_constants(tree: ast.Module) -> dict[str, Any]:
    """Name → literal of each assignment at the level of the module."""
    return {
        target.id: _literal(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def write_windows(system: System) -> str:
    """The windows of the lists, in the order of their weights, and of the result."""
    return f"""\
# List -> how many documents are fetched.
WINDOWS = {windows_by_source(system)!r}
TOP_K = {most_results(system)}
"""


def read_windows(tree: ast.Module) -> dict[str, Any]:
    """``runs``, ``depth`` and ``top_k`` from what :func:`write_windows` wrote.

    Raises:
        KeyError: They are not all there.
        ValueError: They are no such constants.
    """
    constants = find_constants(tree)
    windows = constants["WINDOWS"]
    if not (isinstance(windows, dict) and windows):
        raise ValueError("WINDOWS is no mapping of lists to numbers")
    limits = set(windows.values())
    return {
        "runs": list(windows),
        "depth": limits.pop() if len(limits) == 1 else windows,
        "top_k": constants["TOP_K"],
    }
