"""Run simulations, write their results, and renew the tables of docs/studies/statistics.md.

python -m benchmarks.studies.simulations [NAME …] [--draws N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from benchmarks.studies.simulations.page import Result, format_result, write_result, write_table
from benchmarks.studies.simulations.promise import Estimate, Promise

DRAWS = 2_000


def find_simulations() -> dict[str, ModuleType]:
    """Modules of this folder that have a title, by name."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    modules = {name: import_module(f"benchmarks.studies.simulations.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "TITLE")}


def run_simulation(name: str, module: ModuleType, draws: int | None = None) -> Result:
    """Run one simulation.

    Args:
        name: Of its module.
        module: The simulation.
        draws: None = as many as the module asks for.
    """
    runs: int = getattr(module, "DRAWS", DRAWS) if draws is None else draws
    measured = module.run(draws=runs)
    return Result(
        name=name,
        title=module.TITLE,
        description=" ".join(module.DESCRIPTION.split()),
        draws=runs,
        promises=tuple(each for each in measured if isinstance(each, Promise)),
        estimates=tuple(each for each in measured if isinstance(each, Estimate)),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the named simulations, or all."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.studies.simulations", description=__doc__
    )
    simulations = find_simulations()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(simulations))
    parser.add_argument("--draws", type=int, help="runs of each design (default: the module's)")
    parser.add_argument("--dry-run", action="store_true", help="print only, write nothing")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(simulations)
    if unknown:
        parser.error(f"no simulation {', '.join(sorted(unknown))}: {', '.join(simulations)}")
    for name in options.names or simulations:
        started = time.process_time()
        result = run_simulation(name, simulations[name], options.draws)
        print(format_result(result), f"{time.process_time() - started:.0f} CPU s", flush=True)
        if not options.dry_run:
            write_result(result)
            write_table(result)


if __name__ == "__main__":
    main()
