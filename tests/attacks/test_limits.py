"""Numbers that are far too great: the error states the bound. Variables that name nothing."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.config.models import MOST_FOLDS, MOST_RANK, MOST_TRIALS
from tests.attacks.attack import Attack
from tests.attacks.project import EVAL, EXPERIMENT, TUNE
from tests.attacks.runner import LIMIT, child_environment, run_attack, run_in_child
from tests.edits import replaced

HUGE = "9" * 10
ENDLESS = "9" * 5_000
TWENTY = "9" * 20
LIVE = "  live: {runs: [a]}"
TUNED = (*TUNE[:4], "--no-plots")


def setting(line: str, most: int, *numbers: str, command: tuple[str, ...] = EVAL) -> list[Attack]:
    """A line of the experiment with numbers in the place of %s."""
    old = LIVE if line.startswith("  live") else "baseline: plain\n"
    return [
        Attack(
            f"{line.strip()} with {len(number)} digits",
            command,
            replaced(EXPERIMENT, old, (line if old == LIVE else f"{old}{line}\n") % number),
            says=(EXPERIMENT, str(most) if number == HUGE else "is at most"),
        )
        for number in numbers
    ]


ATTACKS = [
    *setting("  live: {runs: [a], top_k: %s}", MOST_RANK, HUGE, TWENTY),
    *setting("  live: {runs: [a], depth: %s}", MOST_RANK, HUGE, TWENTY),
    *setting("  live: {runs: [a], blend: {method: replace, reranker: r, depth: %s}}", 10**6, HUGE),
    *setting("tune: {system: live, trials: %s}", MOST_TRIALS, HUGE, command=TUNED),
    *setting("tune: {system: live, folds: %s}", MOST_FOLDS, HUGE, command=TUNED),
    *[
        Attack(
            f"a cutoff of {len(number)} digits",
            EVAL,
            replaced(EXPERIMENT, "[RR@10]", f"[nDCG@{number}]"),
            says=(f"{EXPERIMENT}:2: measures.0", says),
        )
        for number, says in ((HUGE, str(MOST_RANK)), (TWENTY, "at most"), (ENDLESS, "nDCG"))
    ],
    *[
        Attack(
            f"{len(number)} digits of threads",
            EVAL,
            environment={"FUSION_BENCH_THREADS": number},
            says=("FUSION_BENCH_THREADS", "from 1 to 1,024"),
        )
        for number in (HUGE, ENDLESS, "0", "-1", "four")
    ],
    Attack(
        "a number of 5,000 digits",
        EVAL,
        replaced(EXPERIMENT, "baseline: plain\n", f"baseline: plain\nseed: {ENDLESS}\n"),
        says=(EXPERIMENT,),
    ),
]


@pytest.mark.parametrize("case", ATTACKS, ids=str)
def test_refused_with_the_bound(case: Attack, project: Path) -> None:
    run_attack(case, project)


@pytest.mark.parametrize("kilobytes", [250_000, 400_000])
def test_too_few_addresses_are_refused(kilobytes: int, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10))

    outcome = run_in_child(("--version",), tmp_path, prepare=limit)
    assert outcome.code == 2, outcome
    assert outcome.err.startswith("error: not enough"), outcome
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(("backend", "known"), [("nonsense", False), ("svg", True)])
def test_matplotlib_is_imported_whatever_the_backend(backend: str, known: bool) -> None:
    code = (
        "import fusion_bench.report.plots, matplotlib, os;"
        "print(matplotlib.rcParams['backend'] == os.environ['MPLBACKEND'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environment({"MPLBACKEND": backend}),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert done.stdout == f"{known}\n"
