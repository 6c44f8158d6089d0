"""Run benchmarks side by side: ``python -m benchmarks [NAME …]``.

A benchmark is a module of this folder with a ``TITLE`` and a function
``rows(rounds, *, toy=False)``. ``toy`` is the smallest size at which every line runs; tests use it.
The other modules with a ``main`` are started by themselves. The studies that write
pages of docs/ stand in ``benchmarks/studies/``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import benchmarks
from benchmarks import commands, engine, huge
from benchmarks.table import draw, encode_csv, markdown, read_rows, replace_between_marks
from benchmarks.timing import Row, describe_machine

ROOT = Path(__file__).parent.parent
RESULTS = "benchmarks/results.json"
#: Tables of the page; each other table is a CSV file beside the page.
SHOWN = (engine.TITLE, commands.TITLE, huge.DEEP_TITLE)
#: From this load on a table says that other work shared the machine.
BUSY = 2


def find_benchmarks() -> dict[str, ModuleType]:
    """The modules that measure speed, by name."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    modules = {
        name: importlib.import_module(f"benchmarks.{name}") for name in names if name != "__main__"
    }
    return {name: module for name, module in modules.items() if hasattr(module, "TITLE")}


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> None:
    """Measure, print the tables and write them below the root."""
    known = find_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*known, []], help="Default: all.")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # numba's, about features that ranx uses
    results = root / RESULTS
    earlier = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
    groups: dict[str, list[Row]] = earlier.get("groups", {})
    loads: dict[str, float] = earlier.get("loads", {})
    for name in options.names or known:
        started = time.perf_counter()
        tables = {known[name].TITLE: list(known[name].rows(options.rounds))}
        if further := getattr(known[name], "further_tables", None):
            tables |= further()
        for title, rows in tables.items():
            groups[title] = rows
            loads[title] = os.getloadavg()[2]  # mean of the last 15 minutes
            print(f"\n{markdown(title, rows)}")
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    write_results(groups, loads, options.rounds, root)


def write_results(
    groups: dict[str, list[Row]], loads: dict[str, float], rounds: int, root: Path
) -> None:
    """Write the raw numbers, the tables and the picture below a root."""
    record = {"machine": describe_machine(), "loads": loads, "rounds": rounds, "groups": groups}
    path = root / RESULTS
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tables = {title: markdown(title, rows) for title, rows in groups.items()}
    for title, load in loads.items():
        if load > BUSY:
            tables[title] += f"\nLoad average {load:.0f}: other work shared the machine.\n"
    source = f"\nMedians of up to {rounds} interleaved rounds on {describe_machine()}.\n"
    page = root / "docs/reference/performance.md"
    links = [write_table(page, title, tables[title]) for title in groups if title not in SHOWN]
    text = "\n".join(table for title, table in tables.items() if title in SHOWN)
    further = "\nFurther tables as CSV:\n\n" + "".join(f"- {link}\n" for link in links)
    replace_between_marks(page, f"\n{text}{further}{source}\n")
    draw(groups, root / "reports/pictures/bench.png")


def write_table(page: Path, title: str, table: str) -> str:
    """Write a table as CSV beside a page, and return a link to the file."""
    name = re.sub("[^a-z0-9]+", "-", title.partition(" (")[0].lower()).strip("-")
    path = page.with_name(f"{page.stem}-{name}.csv")
    path.write_text(encode_csv(read_rows(table)), encoding="utf-8")
    return f"[{title}]({path.name})"


if __name__ == "__main__":
    main()
