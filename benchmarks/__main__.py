"""Everything side by side: ``python -m benchmarks [NAME …]``.

A benchmark is a module of this folder with a ``TITLE`` and a function
``rows(rounds, *, toy=False)``.
``toy`` asks for the smallest size at which every line still runs; tests use it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType

import benchmarks
from benchmarks.table import draw, markdown, put
from benchmarks.timing import Row, machine

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results.json"


def find_benchmarks() -> dict[str, ModuleType]:
    """The modules that measure speed, by name."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    modules = {
        name: importlib.import_module(f"benchmarks.{name}") for name in names if name != "__main__"
    }
    return {name: module for name, module in modules.items() if hasattr(module, "TITLE")}


def main() -> None:
    """Measure, print the tables and keep them."""
    known = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="Default: all.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # numba's, about features that ranx uses
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    groups: dict[str, list[Row]] = kept.get("groups", {})
    for name in options.names or known:
        started = time.perf_counter()
        title = known[name].TITLE
        groups[title] = list(known[name].rows(options.rounds))
        print(f"\n{markdown(title, groups[title])}")
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    _keep(groups, options.rounds)


def _keep(groups: dict[str, list[Row]], rounds: int) -> None:
    """Write the raw numbers, the tables and the picture."""
    load = os.getloadavg()[2]  # of the last quarter of an hour: who else was there
    text = {"machine": machine(), "load": load, "rounds": rounds, "groups": groups}
    RESULTS.write_text(json.dumps(text, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tables = "\n".join(markdown(title, rows) for title, rows in groups.items())
    source = (
        f"\nMedians of up to {rounds} interleaved rounds on {machine()}; "
        f"load average {load:.0f} (shared with other work where that exceeds 2).\n"
    )
    put(ROOT / "docs/performance.md", f"\n{tables}{source}\n")
    first = next(iter(groups.items()))
    put(ROOT / "README.md", f"\n{markdown(*first)}\n")
    draw(groups, ROOT / "reports/pictures/bench.png")


if __name__ == "__main__":
    main()
