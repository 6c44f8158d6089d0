"""What is public is what is listed, and importing it costs only what it needs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fusion_bench

PACKAGE = Path(fusion_bench.__file__).parent


def test_every_listed_name_is_there() -> None:
    for name in fusion_bench.__all__:
        assert getattr(fusion_bench, name) is not None
    assert dir(fusion_bench) == sorted(fusion_bench.__all__)


def test_the_list_is_short_and_sorted() -> None:
    assert list(fusion_bench.__all__) == sorted(fusion_bench.__all__)
    assert len(fusion_bench.__all__) <= 55


def test_a_name_that_is_not_listed_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        _ = fusion_bench.nonsense  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("fused", "'fuse'"), ("evaluate", "compare"), ("methods", "fusion-bench methods")],
)
def test_a_near_name_is_suggested(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(fusion_bench, name)


SUBPACKAGES = ("tune", "gate")


@pytest.mark.parametrize("first", ["function", "subpackage"])
def test_a_function_and_a_subpackage_of_one_name(first: str) -> None:
    steps = []
    for name in SUBPACKAGES:
        function = f"import fusion_bench; assert callable(fusion_bench.{name})"
        subpackage = (
            f"import fusion_bench.{name}; from fusion_bench.{name} import __doc__; import sys; "
            f"assert sys.modules['fusion_bench.{name}'].__doc__ == __doc__"
        )
        steps += ([function] if first == "function" else []) + [subpackage, function]
    subprocess.run([sys.executable, "-c", "; ".join(steps)], check=True)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assigned = [node.targets[0] for node in block.body if isinstance(node, ast.Assign)]
    seen |= {target.id for target in assigned if isinstance(target, ast.Name)}
    assert seen == set(fusion_bench.__all__)


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import fusion_bench, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"numpy", "pydantic", "pandas", "optuna", "matplotlib"} & set(loaded)


@pytest.mark.parametrize("frozen", [False, True])
def test_what_an_import_makes_is_old_at_once(frozen: bool) -> None:
    code = (
        f"import gc; {frozen} and gc.freeze()\n"
        "import fusion_bench; fusion_bench.compare\n"
        "young = gc.get_objects(0) + gc.get_objects(1)\n"
        f"assert gc.isenabled() and (gc.get_freeze_count() > 0) == {frozen}\n"
        f"assert (len(young) > 10_000) == {frozen}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_docstring_example_runs() -> None:
    import doctest

    assert doctest.testmod(fusion_bench).failed == 0
