"""The page of each record for a browser, with the data behind the views of two reports.

Beside the keys of :mod:`fusion_bench.report.html.evaluation_data`, a collection has ``"then"``, the
values of the old report by measure, system and query. Every difference is now − then of the same
system. ``"means"`` and ``"bounds"`` are those of now. A system has ``"then"``, its means in the old
report, and ``"answers"``, what the comparison with the baseline showed then and shows now. Its
group is ``better``, ``open``, ``worse``, ``same``, ``new`` or ``gone``; of the kind ``system`` are
those that changed. Queries are those of both reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fusion_bench.evaluation.details.collector import ReportDetails
from fusion_bench.evaluation.report_changes import (
    CollectionChange,
    ReportChange,
    SystemChange,
    find_changes,
)
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection, SystemResult
from fusion_bench.report.answer_texts import format_answer
from fusion_bench.report.change_page import (
    change_section,
    mount_views,
    shared_collections,
)
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.html.evaluation_data import (
    answer_group,
    config_text,
    encode_values,
    escape_texts,
    evaluation_data,
    head_data,
    inference_data,
    result_data,
)
from fusion_bench.report.html.render import render_html
from fusion_bench.report.page import NextStep, Page, Section
from fusion_bench.util.formatting import escape_control_chars, format_coverage

if TYPE_CHECKING:
    from fusion_bench.report.tuning_records import TuningReport


def change_texts(collection: Collection, alpha: float, *, is_tested: bool) -> dict[str, list[str]]:
    """Picture → paragraphs.

    Args:
        collection: Of the new report; its primary measure and baseline are named.
        alpha: 1 − coverage of the intervals.
        is_tested: Whether differences have intervals.
    """
    primary, coverage = collection.primary_measure, format_coverage(alpha)
    interval = (
        f"Its {coverage} interval is paired by query; all intervals hold together for the systems "
        "that both reports have. One that crosses 0 does not show that nothing changed."
        if is_tested
        else "Nothing is tested, as the reports do not have the same queries or judgments."
    )
    return {
        "systems": [
            f"Each row is a system. The dot is its mean now, the bar the {coverage} interval of "
            "that mean, the open mark its mean then.",
            "The difference is now − then of the same system over the queries of both reports. "
            f"{interval}",
            f"“Against {collection.baseline}” is the verdict of each report on the system against "
            "the baseline of that report, then and now.",
        ],
        "forest": [
            f"Each mark is the mean of now − then in {primary}. Right of 0 is better than before. "
            f"{interval}",
            "Gray: differences too small to be detected with 80 % power.",
        ],
        "heat": [
            "One row a system, one column a query. Blue: better now than then on this query; "
            "orange: worse; the stronger, the more.",
            "Columns are in the order of the chosen system's change. Systems whose values did not "
            "change have no row.",
        ],
        "queries": [
            "Each row is a query, with the chosen system's value then and now, and their "
            "difference. Open one to see every system.",
            "Single queries explain a difference; they do not prove one.",
        ],
    }


def change_data(change: ReportChange, old: Report, new: Report) -> dict[str, Any]:
    """The data of the page of two reports.

    Args:
        change: From the old to the new one, with its paired comparisons.
        old: The report before.
        new: The report now.
    """
    before = {each.name: each for each in old.collections}
    after = {each.name: each for each in new.collections}
    return {
        "kind": "change",
        "name": escape_control_chars(new.name),
        "alpha": new.alpha,
        "min_gain": new.min_gain,
        "collections": [
            _collection_data(each, before[each.name], after[each.name], new)
            for each in shared_collections(change)
        ],
    }


def _collection_data(
    change: CollectionChange, old: Collection, new: Collection, report: Report
) -> dict[str, Any]:
    known = set(old.queries)
    queries = [i for i, query in enumerate(new.queries) if query in known]
    names = [new.queries[i] for i in queries]
    measures = [name for name in new.measures if name in (new.primary_measure, *old.measures)]
    changes = sorted(change.systems, key=_sort_key)
    sides = [old.competitors, new.competitors]
    then, now = (
        [
            encode_values([*_values(rows, changes, collection, names, measure)])
            for measure in measures
        ]
        for rows, collection in zip(sides, (old, new), strict=True)
    )
    return {
        **head_data(new, measures, _most_changed(changes), queries),
        "systems": [
            _system_data(each, sides[0].get(each.name), sides[1].get(each.name), measures, report)
            for each in changes
        ],
        "values": now,
        "then": then,
        "help": escape_texts(
            change_texts(new, report.alpha, is_tested=any(r.comparison for r in changes))
        ),
    }


def _sort_key(change: SystemChange) -> tuple[bool, float]:
    """By the mean now, the best first; systems that are gone last."""
    return (change.status == "gone", -(change.now or 0.0))


def _most_changed(changes: Sequence[SystemChange]) -> str:
    moved = [row for row in changes if row.better or row.worse]
    return max(moved, key=lambda row: abs(row.difference or 0.0)).name


def _values(
    rows: Mapping[str, SystemResult],
    changes: Sequence[SystemChange],
    collection: Collection,
    names: Sequence[str],
    measure: str,
) -> Iterator[list[float | None]]:
    """For each system its values on the shared queries; None where this report has none."""
    index = {query: i for i, query in enumerate(collection.queries)}
    places = [index[name] for name in names]
    for change in changes:
        row = rows.get(change.name)
        if row is None or measure not in row.measures:
            yield [None] * len(places)
        else:
            values = row.measures[measure].values
            yield [values[i] for i in places]


def _system_data(
    change: SystemChange,
    then: SystemResult | None,
    now: SystemResult | None,
    measures: Sequence[str],
    report: Report,
) -> dict[str, Any]:
    results = [None if now is None else now.measures.get(name) for name in measures]
    before = [None if then is None else then.measures.get(name) for name in measures]
    group = _group(change)
    lines = [f"{each.path}: {each.then or '–'} → {each.now or '–'}" for each in change.config]
    texts = [
        format_answer(answer, report.min_gain, alpha=report.alpha)
        for answer in (change.answer_then, change.answer_now)
    ]
    return {
        "name": escape_control_chars(change.name),
        "kind": "system" if change.better or change.worse else group,
        "group": group,
        "note": "",
        "config": config_text("\n".join(lines)),
        **result_data(results),
        "then": [None if result is None else result.mean for result in before],
        "answers": texts,
        "difference": _difference_data(change, report),
    }


def _group(change: SystemChange) -> str:
    """``new``, ``gone``, ``same``, or what now against then shows."""
    if change.status != "both":
        return change.status
    return answer_group(change.answer) if change.better or change.worse else "same"


def _difference_data(change: SystemChange, report: Report) -> dict[str, Any] | None:
    if change.difference is None or _group(change) == "same":
        return None
    data: dict[str, Any] = {
        "value": change.difference,
        "wins": change.better,
        "losses": change.worse,
        **dict.fromkeys(("low", "high", "detectable", "answer")),
        "p": "",
        "verdict": "not tested",
        "few_changes": False,
    }
    if change.comparison is not None:
        data |= inference_data(report, change.comparison)
    return data


def evaluation_html(
    report: Report,
    details: ReportDetails | None = None,
    last: Report | None = None,
    *,
    next_steps: Sequence[NextStep] = (),
) -> str:
    """The page of an evaluation; its views take the place of the figures.

    Args:
        report: What it shows.
        details: Documents, terms and sources; None = its views leave them out.
        last: The report that this one replaces; None = there is none.
        next_steps: The commands that follow.
    """
    page = replace(build_page(report), next_steps=tuple(next_steps))
    change = None if last is None else find_changes(last, report)
    if change is not None:
        section = change_section(change, report.min_gain)
        shown = sum(not section.is_folded for section in page.sections)
        page = replace(page, sections=(*page.sections[:shown], section, *page.sections[shown:]))
    data = evaluation_data(report, details, change)
    return render_html(page, data)


#: What the pictures of a tuning run are drawn from.
DRAWN = (
    *("measure", "trials", "parameters", "importances", "folds", "choice", "tune", "held_out"),
    *("held_out_values", "settings", "front", "thresholds"),
)
#: What is long, and not drawn.
NOT_DRAWN: dict[str, Any] = {
    "choice": {"config"},
    "front": {"points": {"__all__": {"config", "params", "bounds"}}},
}


def tuning_html(
    report: TuningReport, tuned: str = "tuned.yaml", *, next_steps: Sequence[NextStep] = ()
) -> str:
    """The page of a tuning run, which draws its pictures from the record.

    Args:
        report: What it shows.
        tuned: File of the tuned experiment, as commands name it.
        next_steps: The commands that follow.
    """
    from fusion_bench.report import tuning_page
    from fusion_bench.report.tuning_pictures import tuning_pictures

    page = tuning_page.build_page(report, tuple(tuning_pictures(report)), tuned)
    drawn = report.model_dump(mode="json", include=set(DRAWN), exclude=NOT_DRAWN)
    data = {"kind": "tuning", "report": escape_texts(drawn)}
    return render_html(replace(page, next_steps=tuple(next_steps)), data)


def change_html(
    change: ReportChange, old: Report, new: Report, *, page: Page, tables: Sequence[Section] = ()
) -> str:
    """The page of two reports.

    Args:
        change: From the old to the new one, with its paired comparisons.
        old: The report before.
        new: The report now.
        page: From ``build_change_page``.
        tables: Sections to add at its end, such as systems against one baseline.
    """
    page = mount_views(page, change)
    page = replace(page, sections=(*page.sections, *tables))
    return render_html(page, change_data(change, old, new))
