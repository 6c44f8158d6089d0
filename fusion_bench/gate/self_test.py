"""The self-test of an experiment's gate: what it does where the right answer is known.

Two real systems give the differences. Their groups (or queries, without groups) are drawn with
replacement, and the mean of each check is moved to a true drop. ``gate.checks.run_checks``, with
which the gate decides, decides each run.

Format history:
    3   first version with this history
    4   ``list_trials`` and ``trial_alarms``: alarms between repeats of the gated system
    6   the rate of ``pass`` at max_drop, planted drops and the whole command alone
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from fusion_bench.config.json_records import StoredRecord
from fusion_bench.data.grouped_rows import number_by_appearance
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError
from fusion_bench.gate.checks import Check, build_checks, run_checks
from fusion_bench.gate.comparison import compare_records, decide_exit_code, require_abstain
from fusion_bench.gate.inputs import GateInputs, describe_collection
from fusion_bench.gate.self_test_command import CaseOutcome, run_damaged_lists
from fusion_bench.gate.tolerances import measure_spreads, standard_error
from fusion_bench.gate.verdict import CheckStatus, decide_false_answers, find_blocking
from fusion_bench.io.outputs import write_files
from fusion_bench.report.markdown import render_page
from fusion_bench.report.page import Column, Finding, Page, Section, make_table
from fusion_bench.stats.inference import MIN_CHANGED, MIN_UNITS
from fusion_bench.stats.intervals import ALPHA, clopper_pearson
from fusion_bench.stats.thresholds import count_needed
from fusion_bench.stats.values import Pair
from fusion_bench.util.formatting import pluralize

#: Groups of a run, at most: more would take longer than a person waits.
MOST_GROUPS = 100


class PassRate(StoredRecord):
    """How often a check passes at a true drop of exactly ``max_drop``.

    Attributes:
        check: Its name.
        max_drop: m.
        count: Runs in which it passed.
        runs: All runs.
        low: Lower end of the Clopper–Pearson interval, 90 % for all rows together: 95 % one-sided.
        high: Upper end.
        agrees: Whether the rate may be at most 5 %.
    """

    check: str
    max_drop: float
    count: int
    runs: int
    low: float
    high: float
    agrees: bool

    @property
    def rate(self) -> float:
        """Share of the runs in which it passed."""
        return self.count / self.runs


class SelfTestResult(StoredRecord):
    """What a self-test found.

    Attributes:
        systems: The reference system and the gated one.
        agrees: Whether every rate agrees with the stated one, and every case is right.
        rates: In the order of the checks.
        cases: Answers where the right one is known: planted drops, then the whole command.
        skipped: Checks that cannot be tested, with the reason.
    """

    format: Literal["fusion-bench-self-test"] = "fusion-bench-self-test"
    format_version: int = 6
    systems: tuple[str, str]
    agrees: bool
    rates: tuple[PassRate, ...]
    cases: tuple[CaseOutcome, ...]
    skipped: dict[str, str]

    @property
    def headline(self) -> str:
        """The outcome in one line."""
        if not self.rates:
            return "no check can be tested: " + "; ".join(self.skipped.values())
        high = sum(not rate.agrees for rate in self.rates)
        wrong = sum(bool(case.faults) for case in self.cases)
        return (
            f"{pluralize(len(self.rates), 'rate')} of pass at max_drop, {self.rates[0].runs:,} "
            f"runs each: {f'{high} above 5 %' if high else 'none above 5 %'}; "
            f"{pluralize(len(self.cases), 'known answer')}: "
            f"{f'{wrong} wrong' if wrong else 'all right'}"
        )


def run_self_test(
    inputs: GateInputs, *, against: str | None = None, runs: int = 200
) -> SelfTestResult:
    """Try an experiment's gate where the answer is known.

    Args:
        inputs: The experiment, and where its data is.
        against: Another system of the experiment.
        runs: Samples of the queries.
    """
    checks, systems = compare_two_systems(inputs, against)
    tested, skipped = split_checks(checks)
    inputs.progress("true drops", 0, 1)
    rates = tuple(measure_pass_rates(tested, runs=runs, seed=inputs.experiment.seed))
    cases = [*plant_drops(tested, inputs)] if tested else []
    cases += plant_false_answers(inputs)
    inputs.progress("whole command", 0, 1)
    cases += run_damaged_lists(inputs)
    return SelfTestResult(
        systems=systems,
        agrees=bool(rates)
        and all(rate.agrees for rate in rates)
        and not any(case.faults for case in cases),
        rates=rates,
        cases=tuple(cases),
        skipped=skipped,
    )


def split_checks(checks: Sequence[Check]) -> tuple[list[Check], dict[str, str]]:
    """The checks whose differences are enough for a trial, and by name why others are not."""
    tested, skipped = [], {}
    for check in checks:
        changed, units = check.pair.changed, len(set(check.pair.keys))
        if check.error is not None:
            skipped[check.name] = check.error
        elif changed < MIN_CHANGED or units < MIN_UNITS:
            skipped[check.name] = (
                f"{pluralize(units, 'group')}, and the two systems differ on "
                f"{pluralize(changed, 'query')}: at least {MIN_UNITS} and {MIN_CHANGED} are needed"
            )
        else:
            tested.append(check)
    return tested, skipped


def measure_pass_rates(checks: Sequence[Check], *, runs: int, seed: int) -> Iterator[PassRate]:
    """How often each check passes at a true drop of its ``max_drop``; 5 % are promised.

    Args:
        checks: From :func:`split_checks`.
        runs: Samples of the queries.
        seed: Of the samples, and of the gate's draws.
    """
    counts = [0] * len(checks)
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    moved = [move_check(each, -each.max_drop) for each in checks]
    members = {check.pair.keys: list_members(check.pair.keys) for check in moved}
    for _ in range(runs):
        samples = [*sample_checks(moved, members, rng)]
        for place, result in enumerate(run_checks(samples, seed=seed)):
            counts[place] += result.status == "pass"
    for check, count in zip(checks, counts, strict=True):
        low, high = clopper_pearson(count, runs, 1 - 0.1 / len(checks))
        yield PassRate(
            check=check.name,
            max_drop=check.max_drop,
            count=count,
            runs=runs,
            low=low,
            high=high,
            agrees=low <= ALPHA,
        )


def move_check(check: Check, mean: float, scale: float = 1.0) -> Check:
    """A check whose mean difference is this; ``scale`` narrows what lies around it."""
    difference = check.pair.difference
    moved = scale * (difference - difference.mean()) + mean
    return _replace_values(check, moved, check.pair.keys)


def _replace_values(check: Check, difference: FloatArray, keys: tuple[str, ...]) -> Check:
    pair = Pair.from_arrays(
        difference, keys=keys, measure=check.pair.measure, is_bounded=check.pair.is_bounded
    )
    return replace(check, pair=pair)


def list_members(keys: tuple[str, ...]) -> list[IntArray]:
    """Indices of the queries of each group."""
    codes, names = number_by_appearance(keys)
    return [np.flatnonzero(codes == code) for code in range(len(names))]


def sample_checks(
    checks: Sequence[Check],
    members: Mapping[tuple[str, ...], list[IntArray]],
    rng: np.random.Generator,
) -> Iterator[Check]:
    """The checks on groups that are drawn with replacement; those of one slice share the draw.

    Args:
        checks: The checks.
        members: By the keys of a check, from :func:`list_members`.
        rng: Draws the groups.
    """
    drawn: dict[tuple[str, ...], tuple[IntArray, tuple[str, ...]]] = {}
    for check in checks:
        own = check.pair.keys
        if own not in drawn:
            groups = members[own]
            chosen = rng.integers(0, len(groups), min(len(groups), MOST_GROUPS)).tolist()
            rows = [groups[group] for group in chosen]
            # The same ids in each run: then the gate's draws are made once.
            keys = tuple(f"g{place}" for place, row in enumerate(rows) for _ in range(len(row)))
            drawn[own] = np.concatenate(rows), keys
        order, keys = drawn[own]
        yield _replace_values(check, check.pair.difference[order], keys)


def plant_drops(checks: Sequence[Check], inputs: GateInputs) -> Iterator[CaseOutcome]:
    """Drops whose right answer is known: max_drop is 10 standard errors.

    So a drop of .9 of it is shown, and may still be one of all of it: it neither passes nor is
    ``regressed``.
    """
    blocked = 3 if inputs.policy.inconclusive == "block" else 0
    cases: tuple[tuple[str, float, CheckStatus, int], ...] = (
        ("a drop of half of max_drop", -0.5, "pass", 0),
        ("a drop of nine tenths of max_drop", -0.9, "inconclusive", blocked),
        ("a drop of twice max_drop", -2.0, "regressed", 1),
        ("the same with both sides swapped", 2.0, "pass", 0),
    )
    known = [check for check in checks if check.max_drop > 0]
    for title, factor, right, code in cases if known else ():
        planted = []
        for check in known:
            scale = check.max_drop / 10 / standard_error(check)
            planted.append(move_check(check, factor * check.max_drop, scale))
        results = run_checks(planted, seed=inputs.experiment.seed)
        found = decide_exit_code(results, (), find_blocking(inputs.policy))
        faults = [
            f"{each.name}: {each.status}, and {right} is right"
            for each in results
            if each.status != right
        ]
        if found != code:
            faults.append(f"exit code {found}, and {code} is right")
        yield CaseOutcome(
            name=f"planted: {title}",
            statuses=tuple(each.status for each in results),
            exit_code=found,
            faults=tuple(faults),
        )


def plant_false_answers(inputs: GateInputs) -> Iterator[CaseOutcome]:
    """Shares of false answers whose right answer is known: none, exactly ``max``, and all."""
    limit = inputs.policy.false_answers
    if limit is None:
        return
    queries = 10 * max(count_needed(limit.max), count_needed(1 - limit.max))
    blocked = 3 if inputs.policy.inconclusive == "block" else 0
    cases: tuple[tuple[str, int, CheckStatus, int], ...] = (
        ("no unanswerable query is answered", 0, "pass", 0),
        ("a share of max is answered", round(limit.max * queries), "inconclusive", blocked),
        ("every unanswerable query is answered", queries, "regressed", 1),
    )
    for title, answered, right, code in cases:
        result = decide_false_answers("planted", answered, queries, limit.max)
        blocking = find_blocking(inputs.policy)
        found = decide_exit_code((), (), blocking, false_answers=[result])
        is_right = (result.status, found) == (right, code)
        fault = f"{result.status} (exit code {found}), and {right} ({code}) is right"
        yield CaseOutcome(
            name=f"planted: {title}",
            statuses=(result.status,),
            exit_code=found,
            faults=() if is_right else (fault,),
        )


def compare_two_systems(
    inputs: GateInputs, against: str | None = None
) -> tuple[list[Check], tuple[str, str]]:
    """Every check of a policy, and the names of the reference and of the gated system.

    Raises:
        UnknownNameError: There is no system of that name.
        ConfigError: The gated system is the only one.
    """
    experiment, candidate = inputs.experiment, inputs.candidate
    names = [against] if against else [experiment.baseline, *experiment.systems]
    others = [
        experiment.find_system(name, "--other-system") for name in names if name != candidate.name
    ]
    if not others:
        raise ConfigError(
            f"{inputs.source.path}: a self-test needs two different systems, and the only one is "
            f"{candidate.name!r}"
        )
    reference = others[0]
    require_abstain(inputs)
    checks: list[Check] = []
    for task in inputs.load_collections(reference):
        before = describe_collection(task, reference)
        after = describe_collection(task, inputs.candidate)
        compared = compare_records(task, after, {"baseline": before}, {})
        checks += build_checks(inputs.policy, compared)
    if any(check.is_auto for check in checks):
        drops = {each.check.name: each.drop for each in measure_spreads(inputs)}
        checks = [
            replace(check, max_drop=drops[check.name]) if check.is_auto else check
            for check in checks
        ]
    return checks, (reference.name, inputs.candidate.name)


RATES: tuple[Column[PassRate], ...] = (
    Column("check", lambda rate: rate.check, is_text=True, is_name=True),
    Column("true drop", lambda rate: f"{rate.max_drop:g}"),
    Column("passed", lambda rate: f"{rate.count} of {rate.runs}", is_optional=True),
    Column("rate", lambda rate: f"{100 * rate.rate:.2f} %"),
    Column("interval", lambda r: f"[{100 * r.low:.2f}, {100 * r.high:.2f}] %", is_optional=True),
    Column("at most 5 %", lambda rate: "yes" if rate.agrees else "NO", is_text=True),
)
RATE_NOTES = (
    f"Groups of queries are drawn with replacement, at most {MOST_GROUPS} in each run, and the "
    "mean is moved to a true drop of exactly max_drop. Intervals: Clopper–Pearson, 90 % for all "
    "rows together.",
)
CASES: tuple[Column[CaseOutcome], ...] = (
    Column("case", lambda case: case.name, is_text=True, is_name=True),
    Column("statuses", lambda case: ", ".join(case.statuses) or "none", is_text=True),
    Column("exit code", lambda case: str(case.exit_code)),
    Column("right", lambda c: f"NO: {'; '.join(c.faults)}" if c.faults else "yes", is_text=True),
)
CASE_NOTES = (
    "Planted drops are decided as the gate decides checks. The other cases run the whole command "
    "on damaged copies of the gated system's lists. The right answer comes from the construction.",
)


def build_self_test_page(result: SelfTestResult, title: str) -> Page:
    """The page of a self-test; the terminal and Markdown render it."""
    reference, candidate = result.systems
    rates = make_table(
        *("Pass at max_drop", RATES, result.rates),
        notes=RATE_NOTES,
        tone=lambda rate: "plain" if rate.agrees else "failed",
    )
    cases = make_table(
        *("Known answers", CASES, result.cases),
        notes=CASE_NOTES,
        tone=lambda case: "failed" if case.faults else "plain",
    )
    section = Section(
        text=f"Differences of {candidate} and {reference}.",
        findings=tuple(
            Finding(f"{name}: not tested: {reason}", key="skipped")
            for name, reason in result.skipped.items()
        ),
        parts=(rates, cases),
    )
    headline = Finding(result.headline, "passed" if result.agrees else "failed")
    return Page(title, (section,), headline)


def write_self_test(result: SelfTestResult, page: Page, folder: Path) -> list[Path]:
    """Write ``self-test.json`` and ``self-test.md``; returns the files.

    Raises:
        FusionBenchError: The folder cannot be written to.
    """
    texts = {"self-test.json": f"{result.model_dump_json()}\n", "self-test.md": render_page(page)}
    return write_files(folder, texts)
