"""The pages for a browser, with the data behind their views.

Beside a collection's own keys::

    "texts": [Q texts or null],
    "details": {
      "kept": null | [query indices],        # null = all queries keep their documents
      "documents": [ids], "document_texts": [texts or null],
      "relevant": {"query": [M], "documents": [M numbers], "grades": [M],
                   "sources": [S], "source_ranks": [S × [M]], "systems": [T],
                   "system_ranks": [T × [M]]},                            # rank 0 = not returned
      "unjudged": {system: [Q counts among the first ten]},
      "top": [ {"system", "labels": [terms], "query": [L], "documents": [L numbers],
                "grades": [L, null = unjudged], "scores": [L], "terms": [labels × [L or null]],
                "chunks": [L × [number of chunk, number of document, chunks]]} ],
      "overlap": …, "leave_one_out": [rows], "depth_curve": [rows] }

Rows of a query stand together, the best document first.

Plain data, as JSON has it; every number as it was computed, with all its digits::

    { "kind": "evaluation", "name": …, "alpha": …, "min_gain": …,
      "collections": [ {
        "name", "measures": [M names], "measure_titles": [M], "primary", "baseline", "best",
        "queries": [Q ids],
        "first_group": [names of systems],             # of three systems or more, else empty
        "slices": {field: [Q values or null]},         # fields with two values or more
        "systems": [ { "name", "kind": "system|floor|ceiling",
            "group": "better|baseline|open|worse|floor|ceiling", "note", "config": YAML text,
            "means": [M], "low": [M], "high": [M], "unjudged": share of the top 10,
            "bounds": [M × null | {"depth", "judged", "low", "high"}],   # see CompletionBounds
            "difference": null | { "value", "low", "high", "p": text, "wins", "ties", "losses",
                "detectable", "answer", "verdict": text },
            "second": verdict on the second measure } ],         # by primary mean
        "values": [M × {"distinct": [values], "rows": [S × [Q indices, -1 = none]]}],
        "help": {picture: [paragraphs]},
        "texts", "details": see above } ],
      "lint": [findings],                              # as report.json has them
      "change": null | what changed since the report before, see ReportChange }

Names, ids and texts have no control characters: these are shown as codes. A key may be absent; the
page then leaves out what it would show.

In the data of two reports a collection has, beside these keys, ``"then"``, the
values of the old report by measure, system and query. Every difference is now − then of the same
system. ``"means"`` and ``"bounds"`` are those of now. A system has ``"then"``, its means in the old
report, and ``"answers"``, what the comparison with the baseline showed then and shows now. Its
group is ``better``, ``open``, ``worse``, ``same``, ``new`` or ``gone``; of the kind ``system`` are
those that changed. Queries are those of both reports.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fusion_bench.config.json_records import none_if_nan
from fusion_bench.config.yaml_files import format_yaml
from fusion_bench.data.ordering import FloatArray
from fusion_bench.evaluation.details.report_details import CollectionDetails, ReportDetails
from fusion_bench.evaluation.details.top_documents import ShownDocuments
from fusion_bench.evaluation.recommendation import preferred_system
from fusion_bench.evaluation.report_changes import (
    CollectionChange,
    ReportChange,
    SystemChange,
    find_changes,
)
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    MeasureResult,
    SystemResult,
)
from fusion_bench.measures.aliases import display_measure
from fusion_bench.report.answer_texts import format_answer, second_verdict
from fusion_bench.report.change_page import change_section, shared_collections
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.evaluation_tables import primary_table
from fusion_bench.report.html.render import render_html
from fusion_bench.report.page import NextStep, Page, Section
from fusion_bench.stats.comparison import BETTER, WORSE, Comparison
from fusion_bench.util.formatting import escape_control_chars, format_coverage, format_p_value

#: What does nothing but harm in running text: control characters, characters that turn the
#: direction of writing, and half surrogate pairs. Joiners and marks of direction stay: scripts need
#: them, and the page isolates every text.
HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
BLANKS = re.compile(r"[\t\n\r\u2028\u2029]+")


def readable_text(text: str) -> str:
    r"""Running text in one line; other control characters appear as codes such as ``\x1b``."""
    line = BLANKS.sub(" ", text)
    return HARMFUL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), line)


def escape_texts(data: Any) -> Any:  # noqa: ANN401 - plain data of any shape
    """Plain data whose texts have no control characters; these appear as codes."""
    if isinstance(data, str):
        return escape_control_chars(data)
    if isinstance(data, dict):
        return {key: escape_texts(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [escape_texts(value) for value in data]
    return data


def encode_values(rows: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """``{"distinct": [value, …], "rows": [[index or -1, …], …]}``; -1 = no value.

    A value of a ranking measure comes again and again, so that this is a third of the values
    themselves; each is written with all its digits.

    Args:
        rows: Values by query, a row each; None or NaN = no value.
    """
    values = np.array(rows, dtype=np.float64)
    distinct, indices = np.unique(values, return_inverse=True)
    known = np.isfinite(distinct)
    # NaN sorts last, so the indices of what is known stay.
    numbered = np.where(known, np.arange(len(distinct)), -1)[indices.reshape(values.shape)]
    return {"distinct": distinct[known].tolist(), "rows": numbered.tolist()}


def _inference_data(report: Report, comparison: Comparison | ComparisonResult) -> dict[str, Any]:
    """Interval, p, detectable difference and verdict of a comparison.

    Args:
        report: Whose level and least gain the texts name.
        comparison: What was tested.
    """
    return {
        "low": none_if_nan(comparison.low),
        "high": none_if_nan(comparison.high),
        "p": format_p_value(comparison.p, alpha=report.alpha),
        "detectable": comparison.min_detectable_difference,
        "answer": comparison.answer,
        "verdict": format_answer(comparison.answer, report.min_gain),
    }


#: Scores and terms have so many significant digits, as the order of documents does.
DIGITS = 12


def _details_data(details: CollectionDetails) -> dict[str, Any]:
    """The keys ``texts`` and ``details`` of a collection."""
    names = dict.fromkeys(details.relevant.documents)
    for top in details.top:
        names |= dict.fromkeys(top.documents)
        names |= dict.fromkeys(name for row in top.chunks or () for name in row[:2])
    relevant, numbers = details.relevant, ({name: number for number, name in enumerate(names)})
    is_whole = len(details.kept_queries) == len(details.queries)
    texts = [details.document_texts.get(document) for document in numbers]
    data = {
        "kept": None if is_whole else details.kept_queries.tolist(),
        "documents": _names(numbers),
        "document_texts": [text and readable_text(text) for text in texts],
        "relevant": {
            "query": relevant.query.tolist(),
            "documents": [numbers[document] for document in relevant.documents],
            "grades": relevant.grades.tolist(),
            "sources": _names(relevant.sources),
            "source_ranks": relevant.source_ranks.tolist(),
            "systems": _names(relevant.systems),
            "system_ranks": relevant.system_ranks.tolist(),
        },
        "unjudged": {
            escape_control_chars(name): counts.tolist() for name, counts in details.unjudged.items()
        },
        "top": [_top_data(top, numbers) for top in details.top],
        "overlap": {**details.overlap.to_dict(), "sources": _names(details.overlap.sources)},
        "leave_one_out": escape_texts(details.leave_one_out.to_dict()["rows"]),
        "depth_curve": escape_texts(details.depth_curve.to_dict()["rows"]),
    }
    return {"texts": [text and readable_text(text) for text in details.texts], "details": data}


def _top_data(top: ShownDocuments, numbers: dict[str, int]) -> dict[str, Any]:
    graded = zip(top.grades.tolist(), top.judged.tolist(), strict=True)
    chunks = [(numbers[row.chunk], numbers[row.document], row.total) for row in top.chunks or ()]
    return {
        **({"chunks": chunks} if chunks else {}),
        "system": escape_control_chars(top.system),
        "labels": _names(top.labels),
        "query": top.query.tolist(),
        "documents": [numbers[document] for document in top.documents],
        "grades": [grade if is_judged else None for grade, is_judged in graded],
        "scores": _rounded(top.scores),
        "terms": [_rounded(term) for term in top.terms],
    }


def _rounded(values: FloatArray) -> list[float | None]:
    distinct, place = np.unique(values, return_inverse=True)  # many are alike
    rounded = [float(f"{x:.{DIGITS}g}") if math.isfinite(x) else None for x in distinct.tolist()]
    return [rounded[i] for i in place.tolist()]


def _names(names: Iterable[str]) -> list[str]:
    return [escape_control_chars(name) for name in names]


def _collection_data(
    report: Report, collection: Collection, details: CollectionDetails | None = None
) -> dict[str, Any]:
    """The data of one collection; see the module."""
    rows = (*collection.ranked_systems, *collection.reference_rows)
    return {
        **_head_data(collection, collection.measures, preferred_system(collection)),
        "first_group": _names(collection.shown_first_group),
        "systems": [_system_data(report, collection, row) for row in rows],
        "values": [
            encode_values([row.measures[name].values for row in rows])
            for name in collection.measures
        ],
        "help": escape_texts(picture_texts(report, collection)),
        **({} if details is None else _details_data(details)),
    }


def _head_data(
    collection: Collection, measures: Sequence[str], best: str, queries: Sequence[int] | None = None
) -> dict[str, Any]:
    """What a page says of a collection beside its systems.

    Args:
        collection: Whose names are used.
        measures: Of the page.
        best: The system that is shown first.
        queries: Indices of the queries that are shown; None = all.
    """
    shown = range(len(collection.queries)) if queries is None else queries
    fields = {"type": collection.types, **collection.slices}
    slices = {field: [values[i] for i in shown] for field, values in fields.items()}
    return {
        "name": escape_control_chars(collection.name),
        "measures": list(measures),
        "measure_titles": [display_measure(name) for name in measures],
        "primary": collection.primary_measure,
        "baseline": escape_control_chars(collection.baseline),
        "best": escape_control_chars(best),
        "queries": _names(collection.queries[i] for i in shown),
        "slices": {
            field: escape_texts(values) for field, values in slices.items() if len(set(values)) > 1
        },
    }


def _system_data(report: Report, collection: Collection, row: SystemResult) -> dict[str, Any]:
    results = [row.measures[name] for name in collection.measures]
    comparison = collection.comparison(row.name, collection.primary_measure)
    group = row.kind if row.kind != "system" else "baseline"
    return {
        "name": escape_control_chars(row.name),
        "kind": row.kind,
        "group": group if comparison is None else _answer_group(comparison.answer),
        "note": escape_control_chars(row.note),
        "config": "" if row.config is None else _config_text(format_yaml(row.config, width=80)),
        **_result_data(results, unjudged=row.unjudged_share),
        "difference": None
        if comparison is None
        else {
            "value": comparison.difference,
            **{key: getattr(comparison, key) for key in ("wins", "ties", "losses")},
            **_inference_data(report, comparison),
        },
        "second": second_verdict(report, collection, row.name),
    }


def _result_data(results: Sequence[MeasureResult | None], **others: object) -> dict[str, Any]:
    """Means, intervals and bounds of one system on each measure; None where nothing is known.

    Args:
        results: One a measure.
        others: Stand before the bounds.
    """
    ends = {"means": "mean", "low": "low", "high": "high"}
    bounds = [None if result is None else result.bounds for result in results]
    return {
        **{key: [getattr(each, field, None) for each in results] for key, field in ends.items()},
        **others,
        "bounds": [None if each is None else each.model_dump(mode="json") for each in bounds],
    }


def _config_text(text: str) -> str:
    """Lines without control characters."""
    return "\n".join(map(escape_control_chars, text.rstrip("\n").split("\n")))


def _answer_group(answer: str | None) -> str:
    """``better``, ``open`` or ``worse``."""
    if answer in BETTER:
        return "better"
    return "worse" if answer in WORSE else "open"


def evaluation_data(
    report: Report, details: ReportDetails | None = None, change: ReportChange | None = None
) -> dict[str, Any]:
    """The data of the page of an evaluation.

    Args:
        report: Its values.
        details: What stands behind them; None = not computed.
        change: What changed since the report before; None = there was none.
    """
    tables = [None] * len(report.collections) if details is None else details.collections
    return {
        "kind": "evaluation",
        "name": escape_control_chars(report.name),
        "alpha": report.alpha,
        "min_gain": report.min_gain,
        "collections": [
            _collection_data(report, each, table)
            for each, table in zip(report.collections, tables, strict=True)
        ],
        "lint": [escape_texts(finding.model_dump(mode="json")) for finding in report.lint],
        "change": None if change is None else escape_texts(change.to_dict()),
    }


def _shared_collection_data(
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
    moved = [row for row in changes if row.better or row.worse]
    return {
        **_head_data(
            new, measures, max(moved, key=lambda row: abs(row.difference or 0.0)).name, queries
        ),
        "systems": [
            _changed_system_data(
                each, sides[0].get(each.name), sides[1].get(each.name), measures, report
            )
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


def _changed_system_data(
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
        format_answer(answer, report.min_gain) for answer in (change.answer_then, change.answer_now)
    ]
    return {
        "name": escape_control_chars(change.name),
        "kind": "system" if change.better or change.worse else group,
        "group": group,
        "note": "",
        "config": _config_text("\n".join(lines)),
        **_result_data(results),
        "then": [None if result is None else result.mean for result in before],
        "answers": texts,
        "difference": _changed_difference_data(change, report),
    }


def _group(change: SystemChange) -> str:
    """``new``, ``gone``, ``same``, or what now against then shows."""
    if change.status != "both":
        return change.status
    return _answer_group(change.answer) if change.better or change.worse else "same"


def _changed_difference_data(change: SystemChange, report: Report) -> dict[str, Any] | None:
    if change.difference is None or _group(change) == "same":
        return None
    data: dict[str, Any] = {
        "value": change.difference,
        "wins": change.better,
        "losses": change.worse,
        **dict.fromkeys(("low", "high", "detectable", "answer")),
        "p": "",
        "verdict": "not tested",
    }
    if change.comparison is not None:
        data |= _inference_data(report, change.comparison)
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
    shared = {each.name: each for each in shared_collections(change)}
    keys = {name: f"collection {i}" for i, name in enumerate(shared)}
    sections = (replace(each, key=keys.get(each.title, each.key)) for each in page.sections)
    before = {each.name: each for each in old.collections}
    after = {each.name: each for each in new.collections}
    data = {
        "kind": "change",
        "name": escape_control_chars(new.name),
        "alpha": new.alpha,
        "min_gain": new.min_gain,
        "collections": [
            _shared_collection_data(each, before[name], after[name], new)
            for name, each in shared.items()
        ],
    }
    return render_html(replace(page, sections=(*sections, *tables)), data)


HEAT: Final = (
    "One row a system, one column a query. Blue: better than the baseline on this query; orange: "
    "worse; the stronger, the more.",
    "Columns are in the order of the chosen system's gain. A row that fades from blue to orange as "
    "that one does wins and loses on the same queries; one that does not, on others: that is where "
    "a mix could gain.",
    "Where there are more queries than pixels, a column shows the mean of its neighbors. Enlarge "
    "it to see each query; click one to open it.",
)
QUERIES: Final = (
    "Each row is a query, with the baseline's value, the chosen system's, and their difference. "
    "Open one to see the documents.",
    "Single queries explain a difference; they do not prove one. Any system loses some queries by "
    "chance.",
)
OVERLAP: Final = (
    "Shares of common documents in the first ranks of two sources, as a mean over queries. "
    "Sources that share little have more to give each other, if both find relevant documents.",
    "“Only by this source” counts relevant documents that no other source returns at any rank: "
    "without it, no fusion can reach them.",
)
DEPTH_CURVE: Final = (
    "Every source is cut at this rank before it is fused. Where a line is flat, deeper lists cost "
    "time and change nothing.",
)


def picture_texts(report: Report, collection: Collection) -> dict[str, Sequence[str]]:
    """Picture → paragraphs.

    Args:
        report: Whose level is named.
        collection: Whose baseline and measure are named.
    """
    coverage = format_coverage(report.alpha)
    primary, baseline = display_measure(collection.primary_measure), collection.baseline
    together = (
        "All intervals hold together: one or more of them miss the true difference in about "
        f"{100 * report.alpha:g} % of all runs, or fewer."
    )
    return {
        "systems": (
            f"Each row is a system; the dot is its mean, the bar the {coverage} interval of that "
            "mean. All bars of a column share one scale.",
            "Overlapping bars do not mean “no difference”: systems answer the same queries, so the "
            "paired difference decides, and the verdict rests on it alone.",
            "Floor and ceiling rows are no competitors. The floor is the best single source; "
            "nothing can pass the perfect order of the candidates.",
            *primary_table(report, collection).notes,
        ),
        "forest": (
            f"Each mark is the mean of system − {baseline} in {primary} over the same queries, "
            f"with its {coverage} interval. Right of 0 is better.",
            f"{together} An interval that crosses 0 does not show that the systems are equal.",
            "Gray: differences that are often missed (below 80 % power). A mark inside can still "
            "be shown: the band is about other samples of queries, the verdict about this one.",
        ),
        "heat": HEAT,
        "queries": QUERIES,
        "overlap": OVERLAP,
        "leave_one_out": (
            f"Mean {primary} of a system without one source, minus the mean with it. Left of 0 the "
            "source helps; right of 0 the system is better without it.",
            "The intervals are paired by query and not adjusted for their number: take them as a "
            "hint which source to look at.",
        ),
        "depth_curve": DEPTH_CURVE,
    }


def change_texts(collection: Collection, alpha: float, *, is_tested: bool) -> dict[str, list[str]]:
    """Picture → paragraphs.

    Args:
        collection: Of the new report; its primary measure and baseline are named.
        alpha: 1 − coverage of the intervals.
        is_tested: Whether differences have intervals.
    """
    primary, coverage = display_measure(collection.primary_measure), format_coverage(alpha)
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
            "Gray: differences that are often missed (below 80 % power).",
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
