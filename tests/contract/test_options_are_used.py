"""Every option of a command is read, or handed to a function that has a parameter of its name."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import fusion_bench.cli
from fusion_bench.cli.application import commands
from fusion_bench.config.options import Options, list_options

FOLDER = Path(fusion_bench.cli.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
#: What several commands share, beside their own files.
SHARED = sorted((FOLDER / "application").glob("*.py"))
#: Read as attributes of the record by the functions that take it whole.
TAKEN_WHOLE = {
    "eval": ["report.write"],
    "export": ["engines.export"],
    "judge": ["judging.judge_work"],
    "pull": ["engines.pull", "engines.pull_answers"],
    "rerank": ["models.rerank_run"],
    "retrieve": ["models.retrieval"],
    "try": ["report.write"],
    "tune": ["report.write", "tune.options", "tune.run"],
}


def read_names(path: Path) -> set[str]:
    """Names of attributes that a file reads, and texts in it: ``options.given("out")``."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return attributes | {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.isidentifier()
    }


def list_called(path: Path) -> Iterator[Any]:
    """The functions and classes that options are handed on to in a file, by ``call`` or ``run``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = dict(vars(import_of(path)))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fusion"):
            module = import_module(node.module)
            for alias in node.names:
                found = getattr(module, alias.name, None)
                if (
                    found is None
                    and hasattr(module, "__path__")
                    and find_spec(f"{node.module}.{alias.name}")
                ):
                    found = import_module(f"{node.module}.{alias.name}")
                names[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        first, _, attribute = ast.unparse(node.args[0]).partition(".")
        if node.func.attr in ("call", "run") and first in names:
            yield getattr(names[first], attribute) if attribute else names[first]


def import_of(path: Path) -> Any:  # noqa: ANN401 - a module
    name = ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    return import_module(f"fusion_bench.{name.removesuffix('.__init__')}")


def option_classes(path: Path) -> list[type[Options]]:
    module = import_of(path)
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Options)
        and each.__module__ == module.__name__
    ]


def read_by_properties(options: type[Options], used: set[str]) -> set[str]:
    """Names that those properties of a class read that are read themselves."""
    properties = inspect.getmembers(options, lambda member: isinstance(member, property))
    return {
        read for name, each in properties if name in used for read in each.fget.__code__.co_names
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_option_is_read_or_handed_on(path: Path) -> None:
    used: set[str] = set()
    for file in {path, *SHARED}:
        used |= read_names(file)
        for function in list_called(file):
            used |= set(inspect.signature(function).parameters)
    for name in TAKEN_WHOLE.get(path.stem, ()):
        used |= read_names(Path(str(import_module(f"fusion_bench.{name}").__file__)))
    for each in option_classes(path):
        used |= read_by_properties(each, used)
    unused = {
        (each.__name__, option.name)
        for each in option_classes(path)
        for option in list_options(each)
        if option.name not in used
    }
    assert unused == set()


def test_options_are_found() -> None:
    classes = [each for path in [*FILES, *SHARED] for each in option_classes(path)]
    assert len(classes) > 30
    assert hasattr(commands, "DatasetOptions")
