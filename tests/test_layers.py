"""Imports point one way: from the file formats up to the command line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fusion_bench

PACKAGE = Path(fusion_bench.__file__).parent

#: Lowest first. A module may import from its own line and from the lines above it, at any depth
#: of the file, type-checking imports included. A folder stands for everything in it.
LAYERS = [
    ["text", "_version"],
    ["errors"],
    ["order", "files", "strangers", "switches", "trace"],
    ["_native"],
    ["codes", "native"],
    ["ids"],
    ["columns", "extras"],
    ["reading"],
    ["records", "config", "space", "stored"],
    ["registry", "query_types"],
    ["joining", "arrays"],
    ["align"],
    ["storage", "shards"],
    ["load", "normalize", "measure"],
    ["fuse", "blend"],
    ["engine"],
    ["evaluate"],
    ["assess", "catalogue", "origins"],
    ["explain"],
    ["statistics"],
    ["compare", "gate_policy"],
    ["tuning", "list_check"],
    ["experiment"],
    ["report"],
    ["task"],
    ["results"],
    ["run", "inspect"],
    ["contrast", "tune", "gate", "probe"],
    ["remote"],
    ["retrieve", "rerank"],
    ["cli", "pytest_plugin"],
    ["__main__", "__init__"],
]
RANK = {name: level for level, names in enumerate(LAYERS) for name in names}
#: Third-party packages that only these parts may import.
ONLY = {
    "matplotlib": {"report"},
    "optuna": {"tune"},
    "sqlalchemy": {"tune"},
    "distributed": {"tune"},
    "rich": {"report", "cli"},
    "typer": {"cli"},
    "pytest": {"pytest_plugin"},
    "ir_measures": {"measure"},
    "pyarrow": {"load"},
    "bm25s": {"retrieve"},
    "onnxruntime": {"retrieve", "rerank"},
    "tokenizers": {"retrieve", "rerank"},
    "httpx": {"remote"},
    "stamina": {"rerank"},
    "aiolimiter": {"rerank"},
    "sqlite3": {"rerank"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(module: str) -> str:
    """``fusion_bench.fuse.rrf`` belongs to the part ``fuse``."""
    names = module.split(".")
    return names[1] if len(names) > 1 else "__init__"


def module_of(path: Path) -> str:
    relative = path.relative_to(PACKAGE.parent).with_suffix("")
    return ".".join(relative.parts).removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    """Dotted names of everything a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            # `from fusion_bench import measure` imports a module, not a name of the package.
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= modules if node.module == "fusion_bench" else {node.module or ""}
    return found


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_module_has_a_layer_and_imports_only_from_below(path: Path) -> None:
    part = part_of(module_of(path))
    assert part in RANK, f"{part}: give it a place in LAYERS"
    for name in imports_of(path):
        if name.startswith("fusion_bench"):
            other = part_of(name)
            assert part in {other, "__init__"} or RANK[other] < RANK[part], (
                f"{module_of(path)} imports {name}, which is not below it"
            )


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_heavy_packages_stay_where_they_belong(path: Path) -> None:
    part = part_of(module_of(path))
    for name in imports_of(path):
        top = name.split(".")[0]
        assert part in ONLY.get(top, {part}), f"{module_of(path)} imports {top}"


def test_no_two_modules_import_each_other() -> None:
    graph = {
        module_of(path): {name for name in imports_of(path) if name.startswith("fusion_bench.")}
        for path in FILES
        if path.parent == PACKAGE or path.name != "__init__.py"
    }
    for module, imported in graph.items():
        for other in imported:
            assert module not in graph.get(other, set()), f"{module} and {other}"
