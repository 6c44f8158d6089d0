"""Reading the Python that is written for an engine, without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from fusion_bench.errors import ConfigError


def parse_python(files: Mapping[str, str], name: str) -> ast.Module:
    """The syntax tree of a file.

    Raises:
        ConfigError: There is no such file, or it is no Python.
    """
    if name not in files:
        raise ConfigError(f"no file {name} (given: {', '.join(files) or 'none'})")
    try:
        return ast.parse(files[name])
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{name}: no Python: {error}") from None


def find_calls(tree: ast.AST, *functions: str) -> list[tuple[str, dict[str, Any]]]:
    """Function and literal arguments of each call of one of the functions, in their order.

    Positional arguments are under ``"0"``, ``"1"``, …; of what is no literal, the name counts:
    ``HybridFusion.RANKED`` is ``"RANKED"``.
    """
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    found = []
    for call in calls:
        function = call.func.attr if isinstance(call.func, ast.Attribute) else None
        if isinstance(call.func, ast.Name):
            function = call.func.id
        if function in functions:
            values = {str(i): _literal(value) for i, value in enumerate(call.args)}
            values |= {word.arg: _literal(word.value) for word in call.keywords if word.arg}
            found.append((function, values))
    return found


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
