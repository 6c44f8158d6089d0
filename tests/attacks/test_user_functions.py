"""Whatever a function of the user raises or returns is one line and exit code 2, or a number."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from fusion_bench.cli import main
from tests import tiny
from tests.attacks.project import EXPERIMENT
from tests.gate.cases import make_project

Capture = pytest.CaptureFixture[str]
#: What is raised: an expression.
RAISED: Final = (
    *("ValueError()", "KeyError('x')", "OverflowError('big')", "ConfigLike('a\\nb')", "Silent()"),
    *("SystemExit(0)", "SystemExit(1)", "SystemExit('text')", "GeneratorExit()", "Own()"),
    *("StopIteration()", "RecursionError()", "MemoryError()", "AssertionError()", "OSError()"),
)
#: What is returned in the place of a number: an expression; none is a finite number.
NUMBERS: Final = (
    *("10**400", "-10**400", "10**5000", "float('nan')", "float('inf')", "1j", "None"),
    *("'text'", "[]", "{}", "b''", "object()", "Broken()", "np.datetime64('2020')"),
)
CODE: Final = """
import numpy as np
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.normalize import Normalizer
from fusion_bench.measures import Measure

class Own(BaseException): pass
class ConfigLike(Exception): pass
class Silent(Exception):
    def __str__(self): raise ValueError
class Broken:
    def __float__(self): raise RuntimeError("no float")
    def __array__(self, *_, **__): raise RuntimeError("no array")

def give():
    {give}

def spread(documents):
    return {{d: give() for d in documents}}

def my_fusion(lists): return spread(d for each in lists.values() for d in each)
def my_scale(scores): return [give() for _ in scores]
def my_blend(fused, reranked): return spread(fused)
def my_value(grades, ideal): return give()

class ClassFusion(Fusion):
    method: str = "class_fusion"
    def fuse(self, runs): return {array}

class ClassScale(Normalizer):
    method: str = "class_scale"
    def scale_lists(self, lists): return {scale}
    @property
    def keeps_order(self): return False
"""
#: Fuses the lists of a system, and writes no report.
FUSE: Final = ("fuse", EXPERIMENT, "--system", "live", "--out", "f.trec")
#: Kind of a function → what of the experiment calls it.
CALLS: Final = {
    "fusion": ("systems.live.fusion=my_fusion",),
    "normalizer": ("systems.live.fusion={method: weighted_score, normalize: my_scale}",),
    "blend": ("systems.live.blend={method: my_blend, reranker: r}",),
    "measure": ("measures=[RR@10, my_value@5]",),
    "class of a fusion": ("systems.live.fusion=class_fusion",),
    "class of a normalizer": (
        "systems.live.fusion={method: weighted_score, normalize: class_scale}",
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose gated system fuses two lists."""
    root = make_project(tmp_path_factory.mktemp("made"))
    tiny.edit(root, EXPERIMENT, "{runs: [a]}", "{runs: [a, b]}")
    return root


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(shutil.copytree(made, tmp_path, dirs_exist_ok=True))
    return tmp_path


def run(kind: str, code: str) -> int:
    """The exit code of a command that calls a function of that kind."""
    Path("own.py").write_text(code)
    words = ("eval", EXPERIMENT, "--no-plots") if kind == "measure" else FUSE
    changes = [word for change in CALLS[kind] for word in ("--set", change)]
    return main([*words, "--plugin", "own.py", *changes])


def check_refusal(kind: str, code: str, capsys: Capture) -> None:
    ended = run(kind, code)
    shown = capsys.readouterr().err
    assert ended == 2, shown
    assert shown.startswith("error: "), shown
    assert shown.count("\n") == 1, shown


def make_code(give: str, array: str = "", scale: str = "") -> str:
    arrays = {"array": array or "give()", "scale": scale or "give()"}
    return CODE.format(give=give, **arrays)


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.usefixtures("project")
def test_whatever_is_raised_is_one_line(kind: str, capsys: Capture) -> None:
    for raised in RAISED:
        check_refusal(kind, make_code(f"raise {raised}"), capsys)


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.usefixtures("project")
def test_what_is_no_finite_number_is_one_line(kind: str, capsys: Capture) -> None:
    for number in NUMBERS:
        array, scale = "[give()] * len(runs.documents)", "[give()] * len(lists.scores)"
        check_refusal(kind, make_code(f"return {number}", array, scale), capsys)


@pytest.mark.parametrize("kind", ["class of a fusion", "class of a normalizer"])
@pytest.mark.usefixtures("project")
def test_an_array_of_another_kind_is_one_line(kind: str, capsys: Capture) -> None:
    for array in (
        "None",
        "0.5",
        "[0.5]",
        "[[1], [1, 2]]",
        "'text'",
        "{'a': 1}",
        "np.zeros((2, 2))",
    ):
        check_refusal(kind, make_code("return 1.0", array, array), capsys)


@pytest.mark.parametrize("raised", RAISED)
@pytest.mark.usefixtures("project")
def test_whatever_its_module_raises_is_one_line(raised: str, capsys: Capture) -> None:
    check_refusal("fusion", f"{make_code('return 1.0')}\nraise {raised}\n", capsys)


@pytest.mark.parametrize("kind", [each for each in CALLS if "class" not in each])
@pytest.mark.parametrize("number", ["10**300", "-1e300", "np.float32(1)", "True", "2**63", "0.0"])
@pytest.mark.usefixtures("project")
def test_finite_numbers_are_taken(kind: str, number: str, capsys: Capture) -> None:
    ended = run(kind, make_code(f"return {number}"))
    shown = capsys.readouterr().err
    assert ended in {0, 2}, shown
    assert "Traceback" not in shown
    assert "this is a bug" not in shown
