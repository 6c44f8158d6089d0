"""How many queries a difference needs, and what the queries at hand can show."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fusion_bench.api.inputs.report_spread import read_report_spread
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.report_records.report import Report
from fusion_bench.evaluation.stored_reports.read_report import read_report
from fusion_bench.stats.intervals import POWER
from fusion_bench.stats.power.plan_rule import DecisionRule, plan_rule, sidak_tail
from fusion_bench.stats.power.power_plan import PlanWarning, PowerPlan
from fusion_bench.stats.power.spread import assume_spread
from fusion_bench.tune.looks.levels import look_level

#: True differences of the tables.
DIFFERENCES = (0.005, 0.01, 0.02, 0.05)
DEFAULT_ALPHA = 0.05


def power(
    report: Report | str | os.PathLike[str] | None = None,
    *,
    system: str | None = None,
    collection: str | None = None,
    sd: float | None = None,
    queries: int | None = None,
    groups: int | None = None,
    design_effect: float | None = None,
    differences: Sequence[float] = DIFFERENCES,
    systems: int | None = None,
    checks: int = 1,
    power: float = POWER,
    alpha: float | None = None,
) -> PowerPlan:
    """Queries that differences need, and what the queries at hand can show.

    Give a report, or a standard deviation. Source: Sakai 2016, "Topic set size design".

    Args:
        report: A ``Report``, or the path of a ``report.json``: its differences tell the spread.
        system: A compared system of the report; by default the one with the highest mean.
        collection: A collection of the report; by default the first.
        sd: Standard deviation of the differences over queries.
        queries: Queries at hand, with ``sd``.
        groups: Groups among these queries, with ``sd``.
        design_effect: Variance of the mean by group ÷ by query, with ``sd``; by default queries ÷
            groups, the worst that groups can do.
        differences: True differences, each above 0.
        systems: Systems that are compared with the baseline. Default: of a report its family,
            otherwise 1.
        checks: Checks of the gate.
        power: Above .5 and below 1.
        alpha: Family-wise level. Default: the report's, otherwise .05.

    Raises:
        ConfigError: A number out of its range, or options that do not go together.
        DataError: A file that is no report, or a report whose systems do not differ.
        UnknownNameError: No such system or collection.

    >>> plan = power(sd=0.2, differences=[0.02])
    >>> plan.rules[0].differences[0].needed.queries
    790
    """
    _check_options(report, sd, [queries, groups, design_effect], [system, collection])
    if checks < 1:
        raise ConfigError(f"checks: at least 1 is needed, not {checks}")
    comparison, critical, family = None, None, 1
    warnings: tuple[PlanWarning, ...] = ()
    if report is None:
        level = DEFAULT_ALPHA if alpha is None else alpha
        spread = assume_spread(sd or 0.0, queries, groups, design_effect)
    else:
        record = report if isinstance(report, Report) else read_report(Path(report))
        level = record.alpha if alpha is None else alpha
        source = read_report_spread(record, collection, system, level)
        comparison, spread, family = source.comparison, source.spread, source.systems
        warnings = source.warnings
        critical = source.critical_value if systems in (None, family) else None
    count = family if systems is None else systems
    rules = _list_rules(count, critical, checks, level)
    plans = tuple(plan_rule(rule, spread, differences, power) for rule in rules)
    is_family = critical is not None
    return PowerPlan(comparison, count, checks, level, power, spread, plans, is_family, warnings)


def _list_rules(
    systems: int, critical: float | None, checks: int, alpha: float
) -> tuple[DecisionRule, ...]:
    """The rules of eval, tune and gate.

    Args:
        systems: Compared systems of the family.
        critical: The family's c; None = an upper bound of it.
        checks: Checks of the gate.
        alpha: Family-wise level.

    Raises:
        ConfigError: A level or count out of its range.
    """
    return (
        DecisionRule("better or worse", sidak_tail(systems, alpha), critical),
        DecisionRule("ship", look_level(1, alpha)),
        DecisionRule("alarm", alpha / checks),
        DecisionRule("pass on these queries", alpha),
    )


def _check_options(
    report: object, sd: float | None, assumed: Sequence[object], names: Sequence[object]
) -> None:
    """Refuse options that have no effect.

    Raises:
        ConfigError: Neither or both sources, or an option of the other one.
    """
    if (report is None) == (sd is None):
        raise ConfigError("power: give a report or a standard deviation (sd), one of them")
    if report is not None and any(each is not None for each in assumed):
        raise ConfigError("power: queries, groups and design_effect go with sd; a report has them")
    if report is None and any(each is not None for each in names):
        raise ConfigError("power: system and collection are names of a report")
