"""Whether the gate's self-test notices a broken gate: renews docs/studies/gate-mutants.md.

Each mutant is the package with one line changed. What tries the gate runs on it, one after the
other until one notices: planted drops and the rate of ``pass`` at ``max_drop``, and the whole
command on the made cases of the tests.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from benchmarks.table import read_rows, write_csv
from fusion_bench._version import __version__
from fusion_bench.util.files import write_atomic

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "studies" / "gate-mutants.md"
CHECKS, VERDICT, INFERENCE = "gate/checks.py", "gate/verdict.py", "stats/inference.py"
INTERVALS, VALUES = "stats/intervals.py", "stats/values.py"
#: A mutant whose self-test takes longer is one that hangs.
SECONDS = 900

HEAD = """# Mutants of the gate

Does the gate's self-test notice a broken gate? Here one line of the gate is changed at a time, and
the self-test and its made cases run on the changed package. Measured on {day} with version
{version}. To renew this page, run `python -m benchmarks.studies.mutants`.

"Made case" is the whole command, from files to exit code, on lists whose right answer is known.
These lists are in `tests/gate/self_test`. "Planted" and "pass at max_drop" are parts of
`gate --self-test`.

"""

PARTS = """
import sys
from pathlib import Path
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test import (
    compare_two_systems, measure_pass_rates, plant_drops, split_checks,
)
from tests.gate.self_test.made_cases import run_cases

root, runs = Path(sys.argv[1]), int(sys.argv[2])
inputs = GateInputs(*read_experiment(root / "experiments/default.yaml"), [root / "datasets"])
tested, _ = split_checks(compare_two_systems(inputs)[0])
if not tested:
    sys.exit("no check can be tested")
for case in plant_drops(tested, inputs):
    if case.faults:
        sys.exit(case.name)
high = [rate.check for rate in measure_pass_rates(tested, runs=runs, seed=7) if not rate.agrees]
if high:
    sys.exit(f"pass at max_drop: {high[0]}")
for case in run_cases():
    if case.faults:
        sys.exit(f"made case: {case.name}")
print("nothing")
"""


@dataclass(frozen=True)
class Mutant:
    """One changed line.

    Attributes:
        title: What is wrong with the gate.
        file: Below ``fusion_bench/``.
        old: Stands there once.
        new: Stands there instead.
    """

    title: str
    file: str
    old: str
    new: str


def _in_checks(title: str, old: str, new: str) -> Mutant:
    return Mutant(title, CHECKS, old, new)


MUTANTS = (
    Mutant(
        "every check passes",
        VERDICT,
        '    return "inconclusive"',
        '    return "pass"',
    ),
    Mutant("nothing ever regresses", VERDICT, "row.p <= alpha", "False"),
    Mutant(
        "a shown drop within max_drop regresses", VERDICT, "row.mean < -max_drop - NOISE and ", ""
    ),
    Mutant("the lower end is the mean", VERDICT, "row.lower_bound(alpha)", "row.mean"),
    Mutant("a lower end at 90 %", VERDICT, "row.lower_bound(alpha)", "row.lower_bound(2 * alpha)"),
    Mutant("a pass tolerates 2m", VERDICT, "(alpha) > -max_drop", "(alpha) > -2 * max_drop"),
    Mutant("a level of .3", INTERVALS, "ALPHA = 0.05", "ALPHA = 0.3"),
    Mutant("exit code always 0", "cli/gate.py", "typer.Exit(verdict.exit_code)", "typer.Exit(0)"),
    Mutant("p × .5", INFERENCE, "max(2 * level_at_zero", "max(level_at_zero"),
    Mutant("flips × .5", INFERENCE, "p=min(1.0, p * size)", "p=min(1.0, p * size / 2)"),
    Mutant(
        "the family counts once",
        INFERENCE,
        "else _decide_few(row, len(distinct))",
        "else _decide_few(row, 1)",
    ),
    Mutant(
        "standard error × .5",
        INFERENCE,
        "count / (count - 1)) / queries",
        "count / (count - 1)) / queries / 2",
    ),
    Mutant(
        "difference reversed",
        VALUES,
        "paired_difference(self.candidate.values, self.baseline.values)",
        "paired_difference(self.baseline.values, self.candidate.values)",
    ),
    _in_checks(
        "the candidate is the baseline",
        'pair("candidate", measure, reference)',
        "pair(reference, measure, reference)",
    ),
    _in_checks("max_drop × 100", "max_drop=max_drop,", "max_drop=100 * max_drop,"),
    Mutant(
        "groups ignored",
        VALUES,
        "keys=tuple(compress(self.keys, keep.tolist())),",
        "keys=tuple(map(str, np.flatnonzero(keep))),",
    ),
    Mutant("repeats add no variance", INFERENCE, "() if pair is None else pair.repeats", "()"),
    _in_checks("candidates share no level", "alpha = ALPHA / runs", "alpha = ALPHA"),
    _in_checks(
        "one query in ten counted",
        "            keep = counted\n",
        "            keep = counted & (np.arange(len(counted)) % 10 == 0)\n",
    ),
    _in_checks("a slice holds all other queries", "other == value for", "other != value for"),
    _in_checks(
        "unjudged documents never veto a regression",
        'return status == "regressed" and unjudged.decides(-1, max_drop)',
        "return False",
    ),
    _in_checks(
        "unjudged documents never veto a pass",
        "return unjudged.decides(1, max_drop, is_pass=True)",
        "return False",
    ),
    Mutant(
        "guards always hold",
        "gate/comparison.py",
        "holds=not broken and share <= guard.max_share",
        "holds=True",
    ),
    Mutant(
        "the anchor is not checked",
        "gate/comparison.py",
        "tested = family if committed.is_anchor else [*family, *since_anchor]",
        "tested = family",
    ),
    Mutant("candidates are never counted", "gate/run.py", "if all(unchanged):", "if True:"),
    Mutant(
        "a golden query may lie one rank too far",
        "gate/comparison.py",
        "rank <= golden.top,",
        "rank <= golden.top + 1,",
    ),
)


def try_mutant(mutant: Mutant, runs: int) -> str:
    """What noticed the mutant: the part of the self-test, and the first thing wrong.

    Raises:
        ValueError: The line to change does not stand there once.
    """
    with tempfile.TemporaryDirectory() as place:
        package = Path(place) / "fusion_bench"
        shutil.copytree(
            ROOT / "fusion_bench", package, ignore=shutil.ignore_patterns("__pycache__")
        )
        file = package / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise ValueError(f"{mutant.title}: {mutant.file} has {mutant.old!r} not once")
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        done = subprocess.run(  # noqa: S603 - this package, by this interpreter
            [sys.executable, "-c", PARTS, str(ROOT), str(runs)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([place, str(ROOT)])},
            cwd=place,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    return (done.stderr if done.returncode else done.stdout).strip().splitlines()[-1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Try the mutants, and write the page.

    Raises:
        SystemExit: Nothing noticed one that changes an answer, or the package without a change
            was found wrong.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="title of one mutant; write nothing")
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args(arguments)
    whole = Mutant("nothing changed", INTERVALS, "ALPHA = 0.05", "ALPHA = 0.05")
    chosen = [m for m in (whole, *MUTANTS) if options.only in {None, m.title}]
    wrong = []
    rows = ["| changed | in | noticed by |", "| :-- | :-- | :-- |"]
    for mutant in chosen:
        noticed = try_mutant(mutant, options.runs)
        print(f"{mutant.title}: {noticed}", flush=True)
        rows.append(f"| {mutant.title} | `{mutant.file}` | {noticed} |")
        if (noticed == "nothing") != (mutant is whole):
            wrong.append(mutant.title)
    table = read_rows("\n".join(rows))
    if options.only is None:
        head = HEAD.format(day=date.today().isoformat(), version=__version__)
        found = sum(row[2] != "nothing" for row in table[1:])
        count = f"{found} of {len(chosen) - 1} mutants are noticed."
        write_atomic(PAGE, f"{head}{count} {write_csv(PAGE, 'table', table)}\n".encode())
    if wrong:
        sys.exit(f"not as they must be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
