"""Small reports made by hand: each test states only what it is about."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure as DrawnFigure

from fusion_bench.checks.records import ListInfo
from fusion_bench.evaluation.report_file import Provenance, Report
from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    FusionResult,
    MeasureResult,
    SystemResult,
    TieResult,
)
from fusion_bench.report.page import Column, Figure, Finding, Page, Row, Section, Table, YamlBlock
from fusion_bench.stats.unjudged import UnjudgedResult

PRIMARY = "nDCG@10"
SECOND = "RR@10"
#: Characters that mean something to rich, to Markdown, to HTML or to a terminal.
HOSTILE = "[red]x[/red]|<b>"


def measured(
    *values: float | None, ties: TieResult | None = None, mean: float | None = None
) -> MeasureResult:
    there = [value for value in values if value is not None]
    mean = sum(there) / len(there) if mean is None and there else mean
    low, high = (None, None) if mean is None else (max(mean - 0.1, 0.0), min(mean + 0.1, 1.0))
    return MeasureResult(mean=mean, low=low, high=high, values=values, ties=ties)


def tied(affected: int) -> TieResult:
    return TieResult(affected_queries=affected, minimum=0.1, maximum=0.3, expected=0.2)


def untied(mean: float) -> TieResult:
    return TieResult(affected_queries=0, minimum=mean, maximum=mean, expected=mean)


def system(
    name: str,
    *values: float | None,
    runs: Sequence[str] = ("a",),
    blend: str = "none",
    ties: TieResult | None = None,
    unjudged: float | None = 0.0,
    judged_only: Sequence[float | None] = (),
) -> SystemResult:
    result = measured(*values, ties=ties)
    return SystemResult(
        name=name,
        kind="system",
        config={"runs": list(runs), "blend": {"method": blend}},
        measures={PRIMARY: result, SECOND: result},
        judged_only=tuple(judged_only),
        unjudged_share=unjudged,
        returned_documents=3,
    )


def fused(name: str, *values: float | None, blend: str = "none") -> SystemResult:
    return system(name, *values, runs=("a", "b"), blend=blend)


def floor(*values: float | None, note: str = "a, chosen on this split") -> SystemResult:
    result = measured(*values)
    measures = {PRIMARY: result, SECOND: result}
    return SystemResult(name="best single source", kind="floor", note=note, measures=measures)


def ceiling(*values: float | None, name: str = "perfect order") -> SystemResult:
    result = measured(*values)
    measures = {PRIMARY: result, SECOND: result}
    return SystemResult(name=name, kind="ceiling", note="all candidates", measures=measures)


def judged_only(difference: float) -> UnjudgedResult:
    """A difference over judged documents only, without an interval; filled it is half of it."""
    return UnjudgedResult(
        candidate_share=0.1, baseline_share=0.0, judged_only=difference, filled=difference / 2
    )


def compared(
    candidate: str,
    difference: float = 0.1,
    verdict: str | None = "not shown",
    *,
    measure: str = PRIMARY,
    baseline: str = "base",
    p: float = 0.5,
    low: float | None = -0.2,
    high: float | None = 0.4,
    detectable: float | None = None,
    unjudged: UnjudgedResult | None = None,
    ties: int = 1,
) -> ComparisonResult:
    return ComparisonResult(
        measure=measure,
        baseline=baseline,
        candidate=candidate,
        difference=difference,
        low=low,
        high=high,
        p=p,
        wins=2,
        ties=ties,
        losses=0,
        effect_size=0.9,
        min_detectable_difference=detectable,
        unjudged=unjudged,
        answer=verdict if measure == PRIMARY else None,
    )


def run(
    name: str = "a",
    *,
    rerank: bool = False,
    unanswered: int = 0,
    zero_scores: int = 0,
    drop: bool = False,
    notes: Sequence[str] = (),
    degraded: int = 0,
    ledger: dict[str, Any] | None = None,
) -> ListInfo:
    return ListInfo(
        name=name,
        kind="rerank" if rerank else "run",
        roles=() if rerank else ("keyword",),
        read_options={"ties": "trec", "drop_zero_scores": drop},
        score_space="unit" if rerank else None,
        unanswered_queries=unanswered,
        unjudged_queries=1234,
        duplicate_rows=2,
        zero_scores=zero_scores,
        problems=tuple(notes),
        degraded_queries=degraded,
        provider="cohere/m" if ledger else None,
        ledger=ledger,
    )


def collection(
    *systems: SystemResult, comparisons: Sequence[ComparisonResult] = (), **changes: object
) -> Collection:
    count = len(systems[0].measures[PRIMARY].values)
    queries = tuple(f"q{i}" for i in range(count))
    fields: dict[str, Any] = {
        "name": "tiny",
        "version": "1",
        "fingerprint": "f" * 64,
        "digests": {"qrels": "0" * 64},
        "split": None,
        "query_type": None,
        "tuning_split": None,
        "judgments": "pooled",
        "binary_relevance": 1,
        "measures": (PRIMARY, SECOND),
        "baseline": "base",
        "queries": queries,
        "types": (None,) * count,
        "groups": queries,
        "queries_without_relevant": 0,
        "runs": (),
        "systems": systems,
        "comparisons": tuple(comparisons),
    }
    return Collection.model_validate({**fields, **changes})


def report(
    *collections: Collection,
    name: str = "experiment",
    v2: bool = True,
    created: str = "2025-01-02T03:04:05+00:00",
    settings: Mapping[str, object] | None = None,
) -> Report:
    return Report(
        name=name,
        settings={
            "ties": "trec",
            "alpha": 0.05,
            "correction": "max_t",
            "min_gain": 0.005,
            "resamples": None,
            "seed": 7,
            **(settings or {}),
        },
        provenance=Provenance(
            created=created,
            source="experiment.yaml",
            source_sha256="1" * 64,
            versions={"numpy": "2.0"},
            v2_enabled=v2,
        ),
        collections=collections,
    )


def full(name: str = "better one", *, baseline: str = "base", **changes: object) -> Collection:
    """Three systems and the bounds, on two measures; ``name`` is shown to be better."""
    rows = (
        system(baseline, 0.5, 0.4, 0.3, ties=untied(0.4)),
        fused("worse one", 0.2, 0.3, 0.1),
        fused(name, 0.9, 0.8, 0.7),
        floor(0.5, 0.4, 0.3),
        ceiling(0.9, 0.9, 0.9, name="best source per query"),
        ceiling(1.0, 1.0, 1.0),
    )
    fusion = FusionResult(
        verdict="pays",
        fusion=name,
        source="a",
        fusion_mean=0.8,
        source_mean=0.4,
        difference=0.4,
        low=0.3,
        high=0.5,
        p=0.0004,
        fusions=2,
        sources=2,
        is_reranked=False,
    )
    found = [
        compared("worse one", -0.2, "worse", p=0.01, unjudged=judged_only(-0.1), baseline=baseline),
        compared(
            name,
            0.4,
            "better",
            p=0.0004,
            low=0.3,
            high=0.5,
            unjudged=judged_only(0.1),
            baseline=baseline,
        ),
        compared("worse one", -0.2, p=0.01, measure=SECOND, baseline=baseline),
        compared(name, 0.4, p=0.0004, measure=SECOND, baseline=baseline),
    ]
    fields = {"baseline": baseline, "runs": (run(),), "fusion": fusion, **changes}
    return collection(*rows, comparisons=found, **fields)


def many(count: int) -> Collection:
    """A baseline and ``count`` − 1 others; every verdict occurs."""
    verdicts = ("better", "worse", "not shown", "identical", "unjudged decide")
    rows = [system("base", 0.5, 0.4)]
    found = []
    for i in range(count - 1):
        rows.append(fused(f"system {i}", 0.3 + 0.01 * i, 0.2 + 0.01 * i))
        verdict = verdicts[i % len(verdicts)]
        found.append(compared(f"system {i}", 0.01 * i - 0.2, verdict, ties=0))
    return collection(*rows, floor(0.4, 0.3), ceiling(1.0, 1.0), comparisons=found)


def example_page(name: str = "x") -> Page:
    """A page with every kind of part; ``name`` stands wherever a text of a user may stand."""
    table = Table(
        f"Table {name}",
        (Column(name, is_text=True), Column("value")),
        (
            Row((name, "0.1000"), "baseline"),
            Row((name, "0.2000"), "better"),
            Row((name, "0.3000"), "failed"),
            Row((name, "0.4000"), "reference"),
        ),
        (f"A note on {name}.",),
    )
    findings = (
        Finding(f"A finding about {name}."),
        Finding(f"A failure of {name}.", "failed", details=(f"Its detail, {name}.",)),
        Finding(f"A warning about {name}.", "warning"),
    )
    figures = (
        Figure("a.png", f"Figure {name}", f"How to read {name}", DrawnFigure),
        Figure("b.png", f"Other {name}", "", DrawnFigure),
    )
    section = Section(
        title=f"Section {name}",
        summary=f"Summary {name}",
        text=f"A text on {name}",
        facts={f"fact {name}": f"value {name}"},
        findings=findings,
        parts=(table, *figures, YamlBlock(f"Data {name}", {"key": "value"})),
    )
    folded = Section(title=f"Folded {name}", parts=(table,), is_folded=True)
    return Page(name, (section, folded), Finding(f"passed: {name}", "passed"))
