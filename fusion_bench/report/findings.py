"""What a collection's numbers say, in plain sentences: decided here, drawn elsewhere.

"No difference shown" is not "no difference", and a highest mean is not a proven best: the words
keep to what was tested. Findings come first, warnings after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    Report,
    SystemResult,
)
from fusion_bench.report.data_warnings import doubts
from fusion_bench.report.paired import paired
from fusion_bench.report.tables import coverage, level, ranked
from fusion_bench.util.formatting import (
    escape_control_chars,
    format_interval,
    format_number,
    format_p_value,
    pluralize,
)

__all__ = ["Sentence", "sentences"]

#: Values closer than this are equal.
NOISE = 1e-12
#: What systems are called that all blend in a reranker.
TOGETHER = "fusion with a reranker"


@dataclass(frozen=True)
class Sentence:
    """A sentence (or two that belong together), and whether it is a finding or a warning."""

    kind: Literal["finding", "warning"]
    text: str


def sentences(report: Report, collection: Collection) -> tuple[Sentence, ...]:
    """What to know about a collection: findings, then warnings."""
    found = [
        *_decision(report, collection),
        *_tally(collection),
        *_fusion_or_single(report, collection),
        *_power(collection),
        *_headroom(collection),
    ]
    return (
        *(Sentence("finding", text) for text in found),
        *(Sentence("warning", text) for text in doubts(report, collection)),
    )


def _mean(collection: Collection, row: SystemResult) -> float:
    """The primary mean; without one it is below all others."""
    mean = row.measures[collection.primary].mean
    return -np.inf if mean is None or np.isnan(mean) else mean


def _by(found: ComparisonResult, alpha: float) -> str:
    """How large a difference is and how sure."""
    return (
        f"{format_number(found.difference, signed=True)} "
        f"{format_interval(found.low, found.high, signed=True)}, "
        f"Holm p {format_p_value(found.p_holm, alpha=alpha)}"
    )


def _decision(report: Report, collection: Collection) -> Iterator[str]:
    """Whether to leave the baseline, and for what."""
    order, primary = ranked(collection), collection.primary
    baseline, top = escape_control_chars(collection.baseline), order[0]
    compared = {
        row.name: found for row in order if (found := collection.comparison(row.name, primary))
    }
    if not compared:
        mean = format_number(top.measures[primary].mean)
        yield f"{baseline} is the only system ({primary} {mean}): there is nothing to compare."
        return
    alpha = level(report)
    best = next((row for row in order if _verdict(compared, row) == "better"), None)
    if best is not None:
        said = (
            f"{escape_control_chars(best.name)} is shown to be better than the baseline "
            f"{baseline}: {primary} "
            f"{format_number(best.measures[primary].mean)}, {_by(compared[best.name], alpha)}."
        )
    else:
        said = f"No system is shown to be better than the baseline {baseline}: keep the default."
    if top.name == collection.baseline:
        said += f" It has the highest {primary} as well."
    elif top is not best:
        found = compared[top.name]
        said += f" {_highest(collection, top)} ({_by(found, alpha)}): {_meaning(found)}."
    yield said


def _verdict(compared: Mapping[str, ComparisonResult], row: SystemResult) -> str | None:
    return compared[row.name].verdict if row.name in compared else None


def _highest(collection: Collection, top: SystemResult) -> str:
    mean = format_number(top.measures[collection.primary].mean)
    return f"The highest {collection.primary} is {mean}, of {escape_control_chars(top.name)}"


def _meaning(found: ComparisonResult) -> str:
    """Why the highest mean is not a proven best."""
    return {
        "identical": "no query tells it from the baseline",
        "no verdict": "over judged documents only the sign is not the same, so no verdict is drawn",
    }.get(found.verdict or "", "no difference is shown, which is not to say that there is none")


def _tally(collection: Collection) -> Iterator[str]:
    """How the compared systems fared; for one of them the decision has said it."""
    verdicts = Counter(c.verdict for c in collection.comparisons if c.measure == collection.primary)
    total = sum(verdicts.values())
    if total <= 1:
        return
    said = {
        "better": "shown better than the baseline",
        "worse": "shown worse",
        "no difference shown": "not shown to differ",
        "no verdict": "without a verdict",
        "identical": "identical to it",
    }
    parts = [f"{verdicts[key]} {text}" for key, text in said.items() if verdicts[key]]
    yield f"Of {total:,} systems compared: {', '.join(parts)}."


def _is_fusion(row: SystemResult) -> bool:
    return row.config is not None and len(row.config.get("runs", ())) > 1


def _is_plain(row: SystemResult) -> bool:
    """Not reranked; the floor row, a source as it came, is not."""
    config = row.config or {}
    return bool(config.get("blend", {}).get("method", "none") == "none")


def _is_single(row: SystemResult) -> bool:
    """A source alone."""
    return row.kind != "ceiling" and not _is_fusion(row) and _is_plain(row)


def _rivals(
    collection: Collection,
) -> tuple[SystemResult, SystemResult, str] | None:
    """The best fusion and the best source alone, like with like, and what to call the fusions.

    A reranker's merit is not fusion's, so reranked fusions only count where even they lose; where
    there are no others, nothing can be said about fusion alone.
    """
    rows = [
        row
        for row in (*ranked(collection), *collection.systems)
        if np.isfinite(_mean(collection, row))
    ]
    fusions = [row for row in rows if _is_fusion(row)]
    singles = [row for row in rows if _is_single(row)]
    if not fusions or not singles:
        return None
    single = max(singles, key=lambda row: _mean(collection, row))
    plain = [row for row in fusions if _is_plain(row)]
    if not plain:
        return fusions[0], single, TOGETHER
    if plain == fusions or _mean(collection, single) > _mean(collection, fusions[0]):
        return fusions[0], single, "fusion"
    return plain[0], single, "fusion without a reranker"


def _fusion_or_single(report: Report, collection: Collection) -> Iterator[str]:
    """Whether fusing pays: the best fusion against the best source alone."""
    rivals = _rivals(collection)
    if rivals is None:
        return
    fusion, single, kind = rivals
    name = escape_control_chars(single.name)
    if single.kind == "floor":
        name = f"the {name} ({escape_control_chars(single.note)})"
    gain, sure, how = _paired(report, collection, fusion, single)
    top, alone = (format_number(_mean(collection, row)) for row in (fusion, single))
    named = f"the best {kind}, {escape_control_chars(fusion.name)}, is at {top} ({how})"
    said = _pays(gain, kind, f"{name} alone", alone, sure=sure)
    doubt = "" if sure or abs(gain) <= NOISE else "; that may be chance"
    alas = "; what fusion alone does is not in this experiment" if kind == TOGETHER else ""
    yield f"{said}{';' if gain < -NOISE else ','} {named}{doubt}{alas}."


def _pays(gain: float, kind: str, name: str, mean: str, *, sure: bool) -> str:
    """What a gain over the best source alone says, up to the best fusion."""
    together = kind == TOGETHER
    subject, s = ("Fusion and reranker together", "") if together else ("Fusion", "s")
    if gain < -NOISE:
        return f"{subject} lose{s} here: {name} ({mean}) beats every {kind}"
    verb = f"pay{s}"
    if gain <= NOISE:
        verb = f"gain{s} nothing"
    elif not sure:
        verb = f"{'are' if together else 'is'} not shown to pay"
    return f"{subject} {verb} here: {name} is at {mean}"


def _paired(
    report: Report, collection: Collection, fusion: SystemResult, single: SystemResult
) -> tuple[float, bool, str]:
    """Fusion − single source: the mean, whether it is sure, and both in words.

    Where one of the two is the baseline the report's own adjusted test decides.
    """
    for row, base, sign in ((fusion, single, 1), (single, fusion, -1)):
        found = collection.comparison(row.name, collection.primary)
        if found is not None and base.name == collection.baseline:
            p = format_p_value(found.p_holm, alpha=level(report))
            sure = found.verdict in {"better", "worse"}
            return sign * found.difference, sure, _signed(sign * found.difference, f"Holm p {p}")
    values = [row.measures[collection.primary].values for row in (fusion, single)]
    found_here = paired(report, collection, *values)
    if found_here is None:
        return 0.0, False, "n/a"
    low, high = found_here.low, found_here.high
    reach = f"{coverage(report)} interval {format_interval(low, high, signed=True)}, not adjusted"
    return found_here.mean, low > 0 or high < 0, _signed(found_here.mean, reach)


def _signed(difference: float, reach: str) -> str:
    return f"{format_number(difference, signed=True)}, {reach}"


def _power(collection: Collection) -> Iterator[str]:
    """Whether there were enough queries to see what was observed."""
    primary = collection.primary
    compared = [c for row in ranked(collection) if (c := collection.comparison(row.name, primary))]
    if not compared or any(found.verdict == "better" for found in compared):
        return
    found = compared[0]
    if found.verdict != "no difference shown" or found.detectable is None:
        return
    if found.detectable > abs(found.difference):
        groups = len(set(collection.groups))
        grouped = f" in {pluralize(groups, 'group')}" if groups < len(collection.queries) else ""
        yield (
            f"Too few queries to tell {escape_control_chars(found.candidate)} from the baseline: "
            f"{pluralize(len(collection.queries), 'query')}{grouped} would show a difference of "
            f"{format_number(found.detectable)} or more (power .8), and "
            f"{format_number(found.difference, signed=True)} was observed."
        )


def _headroom(collection: Collection) -> Iterator[str]:
    """How far the best system is from what its candidates allow."""
    best = _mean(collection, ranked(collection)[0])
    ceilings = [row for row in collection.systems if row.kind == "ceiling"]
    if not ceilings:
        return
    top = max(ceilings, key=lambda row: _mean(collection, row))
    mean = _mean(collection, top)
    if not (np.isfinite(best) and np.isfinite(mean)):
        return
    yield (
        f"Headroom: {escape_control_chars(top.name)} would reach {format_number(mean)}, "
        f"{format_number(mean - best, signed=True)} over the best system "
        f"({escape_control_chars(top.note)})."
    )
