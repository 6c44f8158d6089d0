"""Whether the gate's self-test notices a broken gate: renews docs/studies/gate-mutants.md.

Each mutant is the package with one line changed. What tries the gate runs on it, one after the
other until one notices: the whole command on the made cases of the tests, the error rates, and the
printed chances on other queries.
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
from pathlib import Path

from fusion_bench.util.files import write_atomic

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "studies" / "gate-mutants.md"
CHECKS, VERDICT = "gate/checks.py", "gate/verdict.py"
ESTIMATES = "gate/estimates.py"
SIGN_FLIPS = "stats/corrections.py"
#: A mutant whose self-test takes longer is one that hangs.
SECONDS = 900

HEAD = """# Mutants of the gate

A self-test that cannot fail proves nothing. Here one line of the gate is changed at a time, and the
self-test and its made cases run on the changed package. `python -m benchmarks.studies.mutants`
renews this page.

"Made cases" means the whole command, from files to exit code, on lists whose right answer is known;
they stand in `tests/gate/self_test`. "Error rates" and "other queries" are the simulations of
`gate --self-test`, which the tests run, too: what any of them notices fails a test. One mutant
changes no answer, and its row says why.

"""

PARTS = """
import sys
from pathlib import Path
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.self_test.error_rates import measure_error_rates
from fusion_bench.gate.self_test.simulation import compare_halves
from fusion_bench.gate.self_test.error_rates import compare_two_systems
from tests.gate.self_test.made_cases import run_cases

root, runs = Path(sys.argv[1]), int(sys.argv[2])
for case in run_cases():
    if case.faults:
        sys.exit(f"made case: {case.name}")
inputs = GateInputs(*read_experiment(root / "experiments/default.yaml"), [root / "datasets"])
checks, names = compare_two_systems(inputs)
rates = measure_error_rates(checks, runs=runs)
if not rates.agrees:
    kinds = [f"{rate.kind} of {rate.check}" for rate in rates.error_rates if not rate.agrees]
    sys.exit(f"error rates: {len(kinds)}, first: {[*kinds, 'no check can be tested'][0]}")
halves = [half.quantity for half in compare_halves(checks, seed=7) if not half.agrees]
if halves:
    sys.exit(f"other queries: {halves[0]}")
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


RATES = '**power.model_dump(exclude={"rejection_drops"}),'
FLIPS = "p_fell[members] = randomization_p_values("
MUTANTS = (
    Mutant(
        "every check passes",
        VERDICT,
        '        return "unchanged"',
        '        pass\n    return "pass"',
    ),
    Mutant("nothing ever fell", VERDICT, "if mean < -max_drop - NOISE and", "if False and"),
    Mutant("p × .5", SIGN_FLIPS, "    return p\n", "    return p / 2\n"),
    Mutant(
        "p is random",
        SIGN_FLIPS,
        "    return p\n",
        "    return np.random.default_rng(0).random(len(p)) / 2\n",
    ),
    Mutant(
        "stated powers too low",
        "gate/power.py",
        "rejection_drops=drops,",
        "rejection_drops=2 * drops,",
    ),
    Mutant(
        "no Holm's correction",
        SIGN_FLIPS,
        "    order = np.argsort(p_values",
        "    return p_values\n    order = np.argsort(p_values",
    ),
    Mutant(
        "100,000 changed queries needed",
        "gate/self_test/error_rates.py",
        "MIN_CHANGED = 10",
        "MIN_CHANGED = 100_000",
    ),
    _in_checks("no test: the mean decides", FLIPS, f"{FLIPS[:-23]}0 * {FLIPS[-23:]}"),
    _in_checks(
        "difference reversed",
        "paired_difference(self.candidate, self.baseline)",
        "paired_difference(self.baseline, self.candidate)",
    ),
    _in_checks(
        "the candidate is the baseline",
        "candidate=after[measure.name][keep]",
        "candidate=before[measure.name][keep]",
    ),
    Mutant("exit code always 0", "cli/gate.py", "typer.Exit(verdict.exit_code)", "typer.Exit(0)"),
    _in_checks(
        "max_drop × 100", "max_drop=tolerance.max_drop,", "max_drop=100 * tolerance.max_drop,"
    ),
    _in_checks("p = 1 in the checks", FLIPS, f"{FLIPS[:-23]}1 + 0 * {FLIPS[-23:]}"),
    _in_checks("p × .5 in the checks", FLIPS, f"{FLIPS[:-23]}0.5 * {FLIPS[-23:]}"),
    _in_checks("no Holm's correction in the checks", "runs * adjust_holm(p)", "runs * p"),
    _in_checks("the t bound is the mean", "t_bound=estimate.low", "t_bound=estimate.mean"),
    _in_checks(
        "groups ignored by the sign flips",
        "rows, groups, resamples=resamples",
        "rows, None, resamples=resamples",
    ),
    _in_checks(
        "groups ignored by every check",
        "groups=task.groups[keep],\n                unjudged",
        "groups=np.flatnonzero(keep),\n                unjudged",
    ),
    _in_checks("a two-sided test", 'seed=seed, alternative="less"', "seed=seed"),
    Mutant(
        "standard error × .5",
        "stats/intervals.py",
        ".sum(axis=-1)) / queries)",
        ".sum(axis=-1)) / queries / 2)",
    ),
    Mutant(
        "t quantile × .3",
        "stats/intervals.py",
        "return float(special.stdtrit(freedom, probability))",
        "return 0.3 * float(special.stdtrit(freedom, probability))",
    ),
    Mutant("a level of .3", VERDICT, "ALPHA = 0.05", "ALPHA = 0.3"),
    _in_checks(
        "printed detectable drop × .5",
        RATES,
        f'{RATES}\n        "min_detectable_drop": (power.min_detectable_drop or 0) / 2,',
    ),
    Mutant(
        "guards always hold",
        "gate/comparison.py",
        "holds=not broken and share <= guard.max_share",
        "holds=True",
    ),
    _in_checks(
        "one query in ten counted",
        "return np.full(len(task.runs.queries), True)",
        "return np.arange(len(task.runs.queries)) % 10 == 0",
    ),
    Mutant(
        "the betting bound is the mean",
        ESTIMATES,
        "bound = betting_bound(difference, groups, alpha=alpha)",
        "bound = estimate.mean",
    ),
    Mutant(
        "every fall is a regression",
        ESTIMATES,
        "if not error > 0:\n        return 0.0 if",
        "return 0.0\n    if not error > 0:\n        return 0.0 if",
    ),
    _in_checks(
        "printed alarm rate × 9",
        RATES,
        f'{RATES}\n        "alarm_rate": 9 * (power.alarm_rate or 0),',
    ),
    Mutant(
        "the betting bound at a third of its capital's logarithm",
        "stats/intervals.py",
        "limit = -np.log(alpha)",
        "limit = -np.log(alpha) / 3",
    ),
    Mutant(
        "the betting bound takes no group for larger than the mean one",
        "stats/intervals.py",
        "return sums / mean_size, float(sizes.max() / mean_size)",
        "return sums / mean_size, 1.0",
    ),
    Mutant(
        "unequal groups have the degrees of freedom of equal ones",
        "stats/intervals.py",
        "if sizes.min() == sizes.max():",
        "if True:",
    ),
    Mutant(
        "a pass tolerates 2m",
        VERDICT,
        'elif -max_drop < t_bound <= mean:\n        status = "pass" if -max_drop',
        'elif -2 * max_drop < t_bound <= mean:\n        status = "pass" if -2 * max_drop',
    ),
    Mutant(
        "the anchor is not checked",
        "gate/comparison.py",
        "tested = family if committed.is_anchor else [*family, *since_anchor]",
        "tested = family",
    ),
    Mutant(
        "an update accepts any loss since the anchor",
        "gate/update.py",
        "    if rejected:",
        "    if False:",
    ),
    _in_checks(
        "unjudged documents never veto an alarm",
        "return status in verdict.ALARMS and unjudged.decides(-1, max_drop)",
        "return False",
    ),
    _in_checks(
        "unjudged documents never veto a pass",
        "return unjudged.decides(1, max_drop, is_pass=True)",
        "return False",
    ),
    _in_checks(
        "the tests of several candidates share no level",
        "np.minimum(1, runs * adjust_holm(p))",
        "np.minimum(1, adjust_holm(p))",
    ),
    _in_checks(
        "the bounds of several candidates share no level",
        "=verdict.ALPHA / runs,",
        "=verdict.ALPHA,",
    ),
    Mutant(
        "candidates are never counted",
        "gate/run.py",
        "        if all(unchanged):",
        "        if True:",
    ),
    Mutant(
        "a golden query may lie one rank too far",
        "gate/comparison.py",
        "rank <= golden.top,",
        "rank <= golden.top + 1,",
    ),
    Mutant(
        "a side of one repeat counts as fixed",
        "gate/estimates.py",
        "borrow=self.borrows)",
        "borrow=False)",
    ),
    _in_checks(
        "repeats add no variance",
        "return () if self.repeats is None else self.repeats.make_terms(self.groups)",
        "return ()",
    ),
    Mutant(
        "Holm's correction × .5",
        SIGN_FLIPS,
        "np.arange(len(p_values), 0, -1)",
        "np.arange(len(p_values), 0, -1) / 2",
    ),
    _in_checks(
        "printed chance of a false pass × .2",
        RATES,
        f'{RATES}\n        "false_pass_rate": 0.2 * (power.false_pass_rate or 0),',
    ),
    _in_checks("a slice holds all other queries", "other == value for", "other != value for"),
)
#: Changes no answer: the queries of a record are always sorted.
EQUIVALENT = Mutant(
    "values are paired by position (equivalent: queries are always sorted)",
    "gate/comparison.py",
    "old.value_arrays(new.queries)",
    "old.value_arrays()",
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
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args(arguments)
    whole = Mutant("nothing changed", VERDICT, "ALPHA = 0.05", "ALPHA = 0.05")
    chosen = [m for m in (whole, *MUTANTS, EQUIVALENT) if options.only in {None, m.title}]
    wrong = []
    rows = ["| changed | in | noticed by |", "| :-- | :-- | :-- |"]
    for mutant in chosen:
        noticed = try_mutant(mutant, options.runs)
        print(f"{mutant.title}: {noticed}", flush=True)
        rows.append(f"| {mutant.title} | `{mutant.file}` | {noticed} |")
        if (noticed == "nothing") != (mutant in {whole, EQUIVALENT}):
            wrong.append(mutant.title)
    if options.only is None:
        write_atomic(PAGE, (HEAD + "\n".join(rows) + "\n").encode())
    if wrong:
        sys.exit(f"not as they must be: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
