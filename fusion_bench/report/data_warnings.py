"""What speaks against the numbers of a page: data, judges, unjudged documents, lint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import join
from typing import Any, Final

from fusion_bench.checks import collection_warnings
from fusion_bench.checks.judges import JUDGE_KEYS
from fusion_bench.checks.lint import LintReport, WitnessDocument, WitnessedFinding
from fusion_bench.checks.records import DataWarning, LintFinding
from fusion_bench.config.json_records import compute_once
from fusion_bench.evaluation.compared_reports import find_collection_warnings
from fusion_bench.evaluation.report_file import Provenance, Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.report.page import (
    LINT,
    Column,
    Finding,
    Page,
    R,
    Section,
    Table,
    Tone,
    make_columns,
    make_table,
)
from fusion_bench.stats.unjudged import CompletionBounds
from fusion_bench.util.formatting import format_number, format_percent, list_names, pluralize

#: Documents to judge at a time.
JUDGING_BUDGET: Final = 50
#: The suffixes of an experiment's file.
EXPERIMENT_SUFFIXES: Final = (".yaml", ".yml")
#: Where ``try`` saves lists that have no experiment.
SAVED_EXPERIMENT: Final = "mine/experiment.yaml"
SAVE_FIRST: Final = " (after 'fusion-bench try' with '--save mine', which writes that file)"


@dataclass(frozen=True)
class JudgePlace:
    """What is judged: one dataset of an experiment.

    Attributes:
        experiment: The experiment's file; what is no such file stands for lists without one.
        dataset: One of its datasets; None = it has one only.
        overrides: Values that ``--set`` replaced.
    """

    experiment: str
    dataset: str | None = None
    overrides: Sequence[str] = ()

    @property
    def is_file(self) -> bool:
        """Whether it is an experiment's file."""
        return self.experiment.endswith(EXPERIMENT_SUFFIXES)

    @classmethod
    def of_report(cls, provenance: Provenance, collection: str, collections: int) -> JudgePlace:
        """One collection of a report.

        Args:
            provenance: Of the report.
            collection: Name of the collection.
            collections: How many the report has.
        """
        dataset = collection if collections > 1 else None
        return cls(provenance.experiment_file, dataset, provenance.overrides)


def format_judge_line(
    place: JudgePlace, candidate: str | None = None, baseline: str | None = None
) -> str:
    """``fusion-bench judge experiments/mine.yaml --candidate NAME --next 50``.

    Args:
        place: What is judged.
        candidate: The system whose difference is to be decided; None = the best.
        baseline: The system that it differs from; None = the experiment's.
    """
    options = {"--baseline": baseline, "--candidate": candidate, "--next": str(JUDGING_BUDGET)}
    return _format_line(place, options)


def format_pool_line(place: JudgePlace, system: str) -> str:
    """``fusion-bench judge experiments/mine.yaml --system NAME --order pool``.

    Args:
        place: What is judged.
        system: The system whose documents are to be judged.
    """
    return _format_line(place, {"--system": system, "--order": "pool"})


def _format_line(place: JudgePlace, options: Mapping[str, str | None]) -> str:
    words = ["fusion-bench", "judge", place.experiment if place.is_file else SAVED_EXPERIMENT]
    for option, name in {"--dataset": place.dataset, **options}.items():
        words += [] if name is None else [option, name]
    for text in place.overrides:
        words += ["--set", text]
    return join(words) + ("" if place.is_file else SAVE_FIRST)


def judge_section(warnings: Iterable[DataWarning]) -> tuple[Section, ...]:
    """The first section of a page whose grades a model gave; none where people gave them.

    Args:
        warnings: All warnings; those about other things are left out.
    """
    keys = {each.text: each.key for each in warnings if each.key in JUDGE_KEYS}
    findings = tuple(Finding(text, "warning", key) for text, key in keys.items())
    return (Section(findings=findings, key="judge"),) if findings else ()


def warning_sections(warnings: Sequence[DataWarning]) -> tuple[Section, ...]:
    """The first sections of a page: who gave the grades, then what else speaks against them."""
    others = tuple(list_findings(warnings))
    return (*judge_section(warnings), *((Section(findings=others),) if others else ()))


#: Behind the share, where depths differ.
K_NOTE = "; k is the measure's cutoff, or 10"
#: Header of the least and the greatest mean over completions.
BOUNDS_HEADER = "if judged"
#: What that column means.
BOUNDS_LEGEND = (
    "least and greatest mean if each unjudged document of the system in its top k had some grade "
    "of the scale, ideals computed again."
)


def judged_columns(
    records: Iterable[R], find_bounds: Callable[[R], CompletionBounds | None]
) -> list[Column[R]]:
    """``Judged@10`` and ``if judged`` of the rows of a table; none with complete judgments.

    Args:
        records: What the rows are made of.
        find_bounds: What is known of a record; None = nothing, then its cells are blank.
    """
    known = [bounds for bounds in map(find_bounds, records) if bounds is not None]
    depths = {bounds.depth for bounds in known}
    k = depths.pop() if len(depths) == 1 else "k"
    share = f"share of judged documents{K_NOTE if k == 'k' else ''}."
    columns = [
        Column[CompletionBounds](
            f"Judged@{k}", lambda bounds: format_percent(bounds.judged), legend=share
        ),
        Column[CompletionBounds](BOUNDS_HEADER, format_ends, legend=BOUNDS_LEGEND),
    ]
    has_ends = any(bounds.low is not None for bounds in known)
    shown = columns[: bool(known) + has_ends]
    return [replace(column, is_optional=True).of(find_bounds) for column in shown]


def describe_columns(columns: Iterable[Column[Any]]) -> tuple[str, ...]:
    """What columns mean, in one note; empty where none has a legend."""
    legends = Table("", tuple(columns), ()).legends
    return (" ".join(legends),) if legends else ()


def format_ends(bounds: CompletionBounds) -> str:
    """``0.4167…1.0000``; blank where they are not known."""
    if bounds.low is None:
        return ""
    return f"{format_number(bounds.low)}…{format_number(bounds.high)}"


def note_unknown_ends(bounds: Iterable[tuple[str, CompletionBounds | None]]) -> Iterator[str]:
    """That no completions are known of some measures.

    Args:
        bounds: Measures, and what is known of a system on each.
    """
    unknown = {name: None for name, each in bounds if each is not None and each.low is None}
    if unknown:
        yield f"{BOUNDS_HEADER} is not known for {list_names([*unknown])}."


@compute_once
def find_report_warnings(report: Report) -> dict[str, list[DataWarning]]:
    """Whatever a reader should know before trusting a number, by collection."""
    found = {}
    v2_enabled = report.provenance.v2_enabled
    for collection in report.collections:
        warnings = [
            *find_collection_warnings(collection),
            *collection_warnings.warn_settings(report.settings, v2_enabled=v2_enabled),
            *_unjudged_warnings(report, collection),
        ]
        total, primary = len(collection.queries), collection.primary_measure
        results = {row.name: row.measures[primary] for row in collection.ranked_systems}
        final = {name: result.ties for name, result in results.items()}
        inside = {name: result.source_ties for name, result in results.items()}
        for key, ties in (("ties", final), ("source ties", inside)):
            counts = {name: each.affected_queries for name, each in ties.items() if each}
            warnings += collection_warnings.warn_ties(key, counts, primary, total)
        found[collection.name] = collection_warnings.sort_warnings(warnings)
    return found


def list_findings(warnings: Iterable[DataWarning]) -> Iterator[Finding]:
    """Yield the warnings but those of :func:`judge_section`, in the order that all pages have."""
    for each in collection_warnings.sort_warnings(warnings):
        if each.key not in JUDGE_KEYS:
            yield Finding(each.text, "plain" if each.key in PROPERTIES else "warning", each.key)


#: Keys of what is the nature of a collection: no warning, but a property.
PROPERTIES: Final = (collection_warnings.SPARSE_JUDGMENTS,)


#: Keys of what can turn an answer round, the most serious first; all other warnings come after.
SERIOUS = (
    *("unmatched documents", "disjoint lists", "few judged documents", "reversed"),
    *("nothing relevant", "one grade", "own ids", "unjudged decide"),
    *("unjudged", "unjudged share", "not tested", "near-duplicate queries", "degraded"),
)


def sort_by_severity(warnings: Iterable[Finding]) -> list[Finding]:
    """The warning that matters most first; the others in their order."""
    places = {key: place for place, key in enumerate(SERIOUS)}
    return sorted(warnings, key=lambda warning: places.get(warning.key, len(places)))


def _unjudged_warnings(report: Report, collection: Collection) -> Iterator[DataWarning]:
    """Too many unjudged documents to trust a measure, and answers that they decide."""
    shares = {row.name: row.unjudged_share or 0.0 for row in collection.ranked_systems}
    is_sparse = not collection.has_irrelevant_judgments
    yield from collection_warnings.warn_unjudged(shares, collection.judgments, is_sparse=is_sparse)
    decided = [c for c in collection.ranked_comparisons if c.answer == "unjudged decide"]
    if decided:
        place = JudgePlace.of_report(report.provenance, collection.name, len(report.collections))
        evidence = {each.candidate: each.difference for each in decided}
        first, names = decided[0], [each.candidate for each in decided]
        # The experiment that try saves may have another baseline.
        baseline = None if place.is_file else first.baseline
        views = "" if first.unjudged is None else f": {first.unjudged.description}"
        compared = pluralize(len(collection.ranked_comparisons), "comparison")
        yield DataWarning(
            key="unjudged decide",
            text=(
                f"Unjudged documents decide {len(decided):,} of {compared} with the baseline. "
                f"Systems: {list_names(names)}. {first.candidate} differs by "
                f"{format_number(first.difference, signed=True)}{views}. If unlisted documents are "
                "not relevant, set judgments: complete. Judge these first: "
                f"{format_judge_line(place, first.candidate, baseline)}"
            ),
            evidence={"differences": evidence},
        )


LINT_TONES: dict[str, Tone] = {"warning": "warning", "note": "plain"}


def lint_lines(findings: Sequence[LintFinding]) -> tuple[Finding, ...]:
    """One line a rule: ``lint ID: message [systems] (PAGE#ID)``; warnings last."""
    by_id: dict[str, list[LintFinding]] = {}
    for finding in findings:
        by_id.setdefault(finding.id, []).append(finding)
    lines = []
    for rule, (first, *others) in by_id.items():
        scope, *more_systems = first.systems
        scope += f" and {len(more_systems)} more" if more_systems else ""
        scope += f", query type {', '.join(first.query_types)}" if first.query_types else ""
        scope += f", intent {', '.join(first.intents)}" if first.intents else ""
        scope += f"; {pluralize(len(others), 'more configuration')}" if others else ""
        text = f"{LINT}{rule}: {first.message} [{scope}] ({first.docs})"
        lines.append(Finding(text, LINT_TONES[first.severity], f"{LINT}{rule}"))
    return tuple(sorted(lines, key=lambda line: line.tone == "warning"))


def lint_section(findings: Sequence[LintFinding]) -> tuple[Section, ...]:
    """The lines as a section of a page; none where nothing was found."""
    return (Section(findings=lint_lines(findings)),) if findings else ()


#: Of the table of all findings; what each says stands in its section.
FINDING_COLUMNS: Final[tuple[Column[WitnessedFinding], ...]] = (
    Column("rule", lambda finding: finding.id, is_text=True),
    Column("severity", lambda finding: finding.severity, is_text=True, is_name=True),
    Column("systems", lambda finding: list_names(finding.systems), is_text=True),
    Column("where", lambda finding: finding.where, is_text=True, is_optional=True),
)


def build_lint_page(report: LintReport) -> Page:
    """The page of a lint report: each finding with its witness."""
    sections = tuple(_build_lint_section(finding) for finding in report.findings)
    notes: list[Finding] = []
    if report.unchecked:
        text = "No dataset is known. Not checked, because these need its dataset.yaml:"
        notes.append(Finding(f"{text} {', '.join(report.unchecked)}.", key="unchecked"))
    if report.unchecked_systems:
        text = "Not checked, because their weights need roles:"
        names = ", ".join(report.unchecked_systems)
        notes.append(Finding(f"{text} {names}.", key="unchecked systems"))
    if report.untranslated:
        systems = ", ".join(f"{name} ({why})" for name, why in report.untranslated.items())
        text = f"Not looked at for {report.engine}: {systems}."
        notes.append(Finding(text, key="untranslated"))
    if report.ignored:
        text = f"Ignored by the experiment: {', '.join(report.ignored)}."
        notes.append(Finding(text, key="ignored"))
    if notes:
        sections = (*sections, Section(findings=tuple(notes)))
    if report.findings:
        table = make_table("Findings", FINDING_COLUMNS, report.findings)
        sections = (Section(parts=(table,)), *sections)
    severities: list[str] = [finding.severity for finding in report.findings]
    counts = (pluralize(severities.count(each), each) for each in ("warning", "note"))
    text = f"{' and '.join(counts)} in {pluralize(len(report.systems), 'system')}."
    tone: Tone = "plain" if severities else "passed"
    headline = Finding(text, "warning" if "warning" in severities else tone)
    return Page(f"Lint: {report.experiment}", sections, headline)


def _build_lint_section(finding: WitnessedFinding) -> Section:
    text = f"{finding.severity}: {finding.message}"
    details = (
        f"systems: {', '.join(finding.systems)}",
        *((f"query types: {', '.join(finding.query_types)}",) if finding.query_types else ()),
        *((f"intents: {', '.join(finding.intents)}",) if finding.intents else ()),
        f"at {finding.where}; see {finding.docs}",
    )
    sources = tuple(dict.fromkeys(name for row in finding.witness.documents for name in row.ranks))
    columns: list[Column[WitnessDocument]] = [
        Column("document", lambda row: row.document, is_text=True),
        *make_columns(
            {name: f"{name} rank" for name in sources},
            lambda name, row: str(row.ranks.get(name, "–")),
        ),
        *make_columns(
            {name: f"{name} score" for name in sources},
            lambda name, row: _format_witness_score(row.scores.get(name)),
            is_optional=True,
        ),
        Column("rerank", _format_witness_score).of(lambda row: row.rerank),
        Column("final score", lambda row: _format_witness_score(row.final_score)),
        Column("final rank", lambda r: "dropped" if r.final_rank is None else str(r.final_rank)),
    ]
    table = make_table(f"Witness: {finding.witness.claim}.", columns, finding.witness.documents)
    return Section(
        title=finding.id,
        findings=(Finding(text, LINT_TONES[finding.severity], finding.id, details),),
        parts=(table.without_empty_columns(),),
    )


def _format_witness_score(score: float | None) -> str:
    return "–" if score is None else f"{score:.4f}"
