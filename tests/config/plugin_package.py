"""A tiny distribution with one plugin of each kind, installed into a folder of its own."""

import sys
from pathlib import Path

import pytest

MODULE = '''
import numpy as np
import typer

from fusion_bench.methods.blend import Blend, Blended
from fusion_bench.methods.fuse import Fusion
from fusion_bench.io.formats import Format
from fusion_bench.io.raw_files import RawTable
from fusion_bench.measures import BinaryMeasure
from fusion_bench.methods.normalize import Normalizer


class BestScore(Fusion):
    """``best_score``: the greatest score of any source."""

    method: str = "best_score"
    shift: float = 0.0

    def fuse(self, runs):
        return np.nanmax(runs.scores, axis=0) + self.shift


class Halve(Normalizer):
    """``tiny_halve``: half the score."""

    method: str = "tiny_halve"

    def scale_lists(self, lists):
        return lists.scores / 2


class Reverse(Blend):
    """``reverse``: the fused list from its end."""

    method: str = "reverse"

    def blend(self, runs, fused, spaces):
        tiers = np.where(fused.positions > 0, 0, -1).astype(np.int8)
        return Blended(-fused.scores, tiers, -fused.sort_scores)


class HitAtOne(BinaryMeasure):
    """``Hit``: whether the first document is relevant."""

    method: str = "Hit"

    def compute_values(self, ranking):
        first = ranking.relevant(self.rel).within_cutoff(1)
        return np.bincount(first.query, minlength=ranking.size).astype(np.float64)


def read_semicolons(path, kind, *, has_ranks, columns):
    """``query;document;value`` a line."""
    lines = path.read_text().splitlines()
    queries, documents, values = zip(*(line.split(";") for line in lines))
    return RawTable(queries, documents, values, None, range(1, len(lines) + 1))


FORMAT = Format((".tiny",), read_semicolons)

hello = typer.Typer(add_completion=False)


@hello.command()
def say_hello(name: str) -> None:
    """Greet somebody."""
    typer.echo(f"hello {name}")
'''
ENTRY_POINTS = """
[fusion_bench.fusions]
best_score = tiny_plugin.methods:BestScore

[fusion_bench.normalizers]
tiny_halve = tiny_plugin.methods:Halve

[fusion_bench.blends]
reverse = tiny_plugin.methods:Reverse

[fusion_bench.measures]
Hit = tiny_plugin.methods:HitAtOne

[fusion_bench.commands]
hello = tiny_plugin.methods:hello

[fusion_bench.formats]
tiny = tiny_plugin.methods:FORMAT
"""
DISTRIBUTION = "tiny-plugin==1.2"


def write_package(folder: Path) -> None:
    (folder / "tiny_plugin").mkdir(parents=True)
    (folder / "tiny_plugin" / "__init__.py").write_text("")
    (folder / "tiny_plugin" / "methods.py").write_text(MODULE)


def install_package(folder: Path, version: str = "1.2") -> None:
    write_package(folder)
    info = folder / f"tiny_plugin-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: tiny-plugin\nVersion: {version}\n"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    files = ["tiny_plugin/__init__.py", "tiny_plugin/methods.py", f"{info.name}/METADATA"]
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    for name in [name for name in sys.modules if name.split(".")[0] == "tiny_plugin"]:
        monkeypatch.delitem(sys.modules, name)
