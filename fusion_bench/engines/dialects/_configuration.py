"""Engines' configurations written, read back: checks of files, Python code."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fusion_bench.engines.dialects._translation import LONGEST_WINDOW
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import Dialect
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend.formulas import NoBlend


def check_writable(dialect: type[Dialect], system: System) -> None:
    """Refuse a system that no request of the engine can say.

    Raises:
        ConfigError: It is of another dialect, or has a blend, numbers by class or a threshold.
    """
    if system.dialect != dialect.name:
        raise ConfigError(
            f"system {system.name!r}: dialect is {system.dialect}, {dialect.name} is needed: "
            "translate it first"
        )
    extras = {
        "blend": not isinstance(system.blend, (NoBlend, *dialect.blends)),
        system.class_field or "by_query_type": system.class_key is not None,
        "policy": system.policy is not None,
        "min_relevance": system.min_relevance != dialect.defaults.get("min_relevance"),
        "stages": bool(system.stages),
    }
    if unwritten := [key for key, is_set in extras.items() if is_set]:
        raise ConfigError(
            f"system {system.name!r}: {', '.join(unwritten)} cannot be written for "
            f"{dialect.title}: translate it first"
        )


def weights_by_source(system: System) -> dict[str, float]:
    """The weight of each source of a system whose weights name sources, not roles.

    Raises:
        ConfigError: They name roles.
    """
    nothing = [frozenset[str]()] * len(system.runs)
    try:
        weights = system.fusion.source_weights(system.runs, nothing).tolist()
    except ConfigError as error:
        raise ConfigError(
            f"system {system.name!r}: {error}: to write it, name sources instead of roles, or "
            "translate it first"
        ) from None
    return dict(zip(system.runs, weights, strict=True))


def windows_by_source(system: System) -> dict[str, int]:
    """How many documents of each source are fetched."""
    depth = system.depth
    if isinstance(depth, Mapping):
        return {name: depth.get(name, LONGEST_WINDOW) for name in system.runs}
    return dict.fromkeys(system.runs, depth or LONGEST_WINDOW)


def common_window(system: System) -> int:
    """How many documents of every source are fetched.

    Raises:
        ConfigError: Not the same of each.
    """
    windows = set(windows_by_source(system).values())
    if len(windows) > 1:
        raise ConfigError(
            f"system {system.name!r}: depth: all lists have one window here: set one number"
        )
    return windows.pop()


def most_results(system: System) -> int:
    """How many fused documents are returned."""
    return system.top_k or sum(windows_by_source(system).values())


def write_json(data: Any) -> str:  # noqa: ANN401 - whatever the engine reads
    """JSON as people read it."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_file(files: Mapping[str, str], name: str) -> str:
    """The text of a file of a configuration.

    Raises:
        ConfigError: There is no such file.
    """
    if name not in files:
        raise ConfigError(f"no file {name} (given: {', '.join(files) or 'none'})")
    return files[name]


def read_json(files: Mapping[str, str], name: str) -> Any:  # noqa: ANN401 - whatever is there
    """The contents of a JSON file.

    Raises:
        ConfigError: There is no such file, or it is no JSON.
    """
    text = read_file(files, name)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{name}:{error.lineno}: no JSON: {error.msg}") from None


def unreadable(name: str, title: str, problem: object) -> ConfigError:
    """The error for a file that is no configuration of an engine."""
    return ConfigError(f"{name}: not a configuration of {title} as it is written here: {problem}")


@contextmanager
def refuse_unreadable(name: str, title: str) -> Iterator[None]:
    """Raise the error of :func:`unreadable` where what is read has another structure.

    Raises:
        ConfigError: A key, an item or an attribute is missing, or a value is of another kind.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
        raise unreadable(name, title, problem) from None


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
