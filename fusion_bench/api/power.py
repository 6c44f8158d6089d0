"""Plan how many queries a difference needs, and what the queries at hand can show."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from fusion_bench.checks.records import DataWarning
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.evaluation.report_file import Report, read_report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.report.data_warnings import find_report_warnings
from fusion_bench.report.power_page import PlannedComparison, PowerPlan
from fusion_bench.stats.intervals import ALPHA, POWER
from fusion_bench.stats.power import Spread, estimate_spread, plan_rule, sidak_tail
from fusion_bench.tune.looks import look_level


def assume_spread(
    sd: float,
    queries: int | None = None,
    groups: int | None = None,
    design_effect: float | None = None,
) -> Spread:
    """A spread that is assumed.

    Args:
        sd: Standard deviation of the differences over queries.
        queries: Queries at hand; None = none.
        groups: Groups among these queries, of equal size; None = every query alone.
        design_effect: None = the worst that groups can do, queries ÷ groups: a group says no
            more than one query.

    Raises:
        ConfigError: A number out of its range, or groups without queries.
    """
    if not (sd > 0 and math.isfinite(sd)):
        raise ConfigError(f"sd: must be above 0, not {sd}")
    if queries is not None and queries < 2:
        raise ConfigError(f"queries: at least 2 are needed, not {queries}")
    if groups is not None and queries is None:
        raise ConfigError("groups: the number of queries is needed too")
    if groups is not None and queries is not None and not 2 <= groups <= queries:
        raise ConfigError(f"groups: from 2 to the number of queries, {queries}, not {groups}")
    effect = design_effect
    if effect is None:
        effect = 1.0 if groups is None or queries is None else queries / groups
    if not (effect > 0 and math.isfinite(effect)):
        raise ConfigError(f"design_effect: must be above 0, not {effect}")
    if queries is None:
        return Spread(sd, design_effect=effect)
    freedom = queries / effect - 1 if groups is None else groups - 1
    return Spread(sd, queries, effect, max(freedom, 1.0), groups=groups)


def _find_candidate(collection: Collection, name: str | None) -> str:
    candidates = _list_candidates(collection)
    if name is not None and name not in candidates:
        raise UnknownNameError("system", name, candidates)
    if not candidates:
        raise ConfigError(f"collection {collection.name!r}: no system but the baseline")
    return candidates[0] if name is None else name


def _list_candidates(collection: Collection) -> list[str]:
    """Compared systems, the one with the highest mean first."""
    names = (row.name for row in collection.ranked_systems)
    return [name for name in names if name != collection.baseline]


#: True differences of the tables.
DIFFERENCES = (0.005, 0.01, 0.02, 0.05)


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
    warnings: tuple[DataWarning, ...] = ()
    if report is None:
        level = ALPHA if alpha is None else alpha
        spread = assume_spread(sd or 0.0, queries, groups, design_effect)
    else:
        record = report if isinstance(report, Report) else read_report(Path(report))
        level = record.alpha if alpha is None else alpha
        by_name = {each.name: each for each in record.collections}
        if collection is not None and collection not in by_name:
            raise UnknownNameError("collection", collection, by_name)
        part = record.collections[0] if collection is None else by_name[collection]
        candidate = _find_candidate(part, system)
        pair = part.table.pair(candidate, part.primary_measure)
        if not pair.changed:
            raise DataError(
                f"collection {part.name!r}: {candidate!r} and the baseline {part.baseline!r} have "
                f"the same {part.primary_measure} on every query, which tells no spread"
            )
        spread = estimate_spread(pair.difference, pair.groups)
        comparison = PlannedComparison(part.name, part.primary_measure, part.baseline, candidate)
        warnings = tuple(find_report_warnings(record)[part.name])
        family = sum(len(_list_candidates(each)) for each in record.collections)
        stored = part.comparison(candidate, part.primary_measure)
        if stored is not None and level == record.alpha and systems in (None, family):
            critical = stored.critical_value
    count = family if systems is None else systems
    rules = (
        ("better or worse", sidak_tail(count, level), critical),
        ("ship", look_level(1, level), None),
        ("regressed", level / (2 * checks), None),
        ("pass", level, None),
    )
    plans = tuple(
        plan_rule(name, tail, spread, differences, critical=known, power=power)
        for name, tail, known in rules
    )
    is_family = critical is not None
    return PowerPlan(comparison, count, checks, level, power, spread, plans, is_family, warnings)


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
