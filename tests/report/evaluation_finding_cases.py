"""Collections that differ in one thing each, for the golden page of an evaluation's findings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import (
    Collection,
    ComparisonResult,
    FusionResult,
    SourceTieResult,
    SystemResult,
    TieResult,
)
from fusion_bench.report.answer_texts import answer_findings
from fusion_bench.report.evaluation_findings import (
    collection_findings,
    decision_finding,
    group_finding,
)
from fusion_bench.report.page import Finding
from fusion_bench.stats.comparison import Answer
from fusion_bench.stats.unjudged import UnjudgedResult
from tests.report import cases
from tests.report.cases import SECOND, ceiling, collection, compared, fused, run, system, tied

BASE = system("base", 0.5, 0.4)
HIGH = system("high", 0.9, 0.8)
LOW = system("low", 0.2, 0.1)
SIX = [system(f"s{i}", 0.6, 0.5) for i in range(6)]
VERDICTS = ("better", "better", "worse", "unjudged decide", "identical", "not shown")
UNJUDGED = UnjudgedResult(
    candidate_share=0.4, baseline_share=0.0, judged_only=-0.2, low=-0.3, high=-0.1, filled=-0.05
)
FUSION = FusionResult(
    verdict="pays",
    fusion="both",
    source="base",
    fusion_mean=0.7,
    source_mean=0.5,
    difference=0.2,
    low=0.1,
    high=0.3,
    p=0.01,
    fusions=2,
    sources=3,
    is_reranked=False,
)
FOUR = system("base", 0.1, 0.2, 0.3, 0.4)
GROUPS = ("a", "a", "b", "b")
SOURCE_TIES = SourceTieResult(
    affected_queries=2, minimum=0.1, maximum=0.2, expected=0.15, settlements=200
)


def compare(*systems: SystemResult, comparisons: Sequence[ComparisonResult]) -> Collection:
    return collection(*systems, comparisons=comparisons)


def fusion(**changed: object) -> Collection:
    """A collection with an answer to whether fusion pays."""
    rows = (system("base", 0.5, 0.5), fused("both", 0.7, 0.7))
    return collection(*rows, fusion=FUSION.model_copy(update=changed))


def unjudged(*shares: float | None, judgments: str = "pooled", **changed: Any) -> Collection:  # noqa: ANN401 - any field
    """Systems with shares of unjudged documents; the first is the baseline."""
    rows = [system(f"s{i}", 0.5, unjudged=share) for i, share in enumerate(shares)]
    return collection(*rows, baseline="s0", judgments=judgments, **changed)


def ties(*affected: int | None) -> Collection:
    """Systems with ties on some of 20 queries, of which 5 % are one."""
    counts = (None if count is None else tied(count) for count in affected)
    rows = [system(f"s{i}", *(0.5,) * 20, ties=count) for i, count in enumerate(counts)]
    return collection(*rows, baseline="s0")


def tied_inside(**ties: TieResult) -> Collection:
    """One system with ties of a kind."""
    row = system("s0", *(0.5,) * 20)
    measures = {name: result.model_copy(update=ties) for name, result in row.measures.items()}
    return collection(row.model_copy(update={"measures": measures}), baseline="s0")


def cut(name: str, top_k: int | None, *values: float) -> SystemResult:
    """A system that returns so many documents, with deeper measures."""
    row = system(name, *values)
    measures = dict.fromkeys((cases.PRIMARY, "R@100", "AP"), row.measures[cases.PRIMARY])
    return row.model_copy(update={"config": {"top_k": top_k}, "measures": measures})


def inputs(**changed: object) -> Collection:
    """A collection whose one list has such facts."""
    return collection(BASE, runs=(run().model_copy(update=changed),))


def absent(method: str, missing: str | None, normalize: object, lowest: float) -> Collection:
    """A fusion of two lists, one of which has this lowest score."""
    fusion = {"method": method, "missing": missing, "normalize": normalize}
    row = system("s0", 0.5).model_copy(update={"config": {"runs": ["a", "b"], "fusion": fusion}})
    lists = (run("a").model_copy(update={"lowest_score": lowest}), run("b"))
    return collection(row, baseline="s0", runs=lists)


def grouped(
    *values: tuple[float, ...],
    groups: Sequence[str] = GROUPS,
    **changed: Any,  # noqa: ANN401 - any field's value
) -> list[Finding]:
    """What is said of groups of queries, as only its own finding."""
    rows = [fused(f"s{i}", *row) for i, row in enumerate(values)]
    found = collection(FOUR, *rows, groups=groups, **changed)
    finding = group_finding(cases.report(found), found)
    return [] if finding is None else [finding]


def answers(
    *group: str,
    answer: Answer = "not shown",
    systems: int = 4,
    groups: int = 400,
) -> list[Finding]:
    """What is said of the best group and of unseen losses."""
    return [*answer_findings([compared("a", 0.1, answer)], group, systems=systems, groups=groups)]


GAIN = compared("high", 0.4, "better", p=0.01, low=0.3, high=0.5)
GOOD = compared("good", 0.2, "better", p=0.0001, low=0.1, high=0.3)
LARGE = compared("high", 0.4, detectable=0.5)
SECONDARY = compared("low", 0.4, measure=SECOND, p=0.0001).model_copy(update={"answer": "better"})
DECIDED = compared("high", 0.4, "unjudged decide", unjudged=UNJUDGED)

COLLECTIONS: dict[str, Collection] = {
    "a single system": collection(BASE),
    "a better system": compare(BASE, HIGH, comparisons=[GAIN]),
    "a higher mean that is not shown to be better": compare(
        BASE,
        system("good", 0.6, 0.7),
        HIGH,
        comparisons=[GOOD, compared("high", 0.4, p=0.06, low=-0.1, high=0.9)],
    ),
    "worse": compare(BASE, LOW, comparisons=[compared("low", -0.3, "worse")]),
    "not shown": compare(BASE, HIGH, comparisons=[compared("high", 0.4, p=0.0496)]),
    "identical": compare(
        system("twin", 0.5, 0.4), BASE, comparisons=[compared("twin", 0.0, "identical")]
    ),
    "a secondary measure": compare(BASE, LOW, comparisons=[SECONDARY, compared("low", -0.3)]),
    "several verdicts": compare(
        BASE,
        *SIX,
        comparisons=[compared(f"s{i}", 0.1, verdict) for i, verdict in enumerate(VERDICTS)],
    ),
    "fusion pays": fusion(),
    "fusion pays against one source": fusion(sources=1),
    "fusion loses": fusion(verdict="loses"),
    "fusion is not shown to pay": fusion(verdict="not shown"),
    "fusion with a reranker pays": fusion(is_reranked=True),
    "little power": compare(BASE, HIGH, comparisons=[LARGE]),
    "enough power": compare(BASE, HIGH, comparisons=[compared("high", 0.4, detectable=0.39)]),
    "unknown power": compare(BASE, HIGH, comparisons=[compared("high", 0.4)]),
    "little power for what unjudged documents decide": compare(
        BASE, HIGH, comparisons=[compared("high", 0.4, "unjudged decide", detectable=0.5)]
    ),
    "little power for what is better": compare(
        BASE, HIGH, comparisons=[compared("high", 0.4, "better", detectable=0.5)]
    ),
    "little power beside a better system": compare(
        BASE, HIGH, LOW, comparisons=[LARGE, compared("low", 0.1, "better")]
    ),
    "headroom": collection(BASE, ceiling(0.9, 0.8, name="best per query"), ceiling(1.0, 1.0)),
    "no headroom": collection(system("base", 0.998), ceiling(1.0)),
    "no ceiling": collection(BASE, ceiling(None, None)),
    "no mean below a ceiling": collection(system("base", None), ceiling(1.0)),
    "unanswered queries": inputs(unanswered_queries=1234),
    "an unanswered query of a reranker": collection(
        BASE, runs=(run("r", rerank=True, unanswered=1, zero_scores=5),)
    ),
    "rows of score 0": inputs(zero_scores=1500),
    "rows of score 0 that are dropped": collection(BASE, runs=(run(zero_scores=1500, drop=True),)),
    "a degraded reranker": collection(
        BASE, runs=(run("r", rerank=True, degraded=3, notes=["rerank list 'r' is squeezed"]),)
    ),
    "unread scores": inputs(name="r", unread_scores={"q1": (3, 7), "q2": (1,)}),
    "documents that nobody judged": inputs(has_judged_documents=False),
    "a query of another spelling": inputs(unjudged_queries=1, unmatched_queries=(("Q5", "q05"),)),
    "one of many queries": inputs(
        unjudged_queries=400, unmatched_queries=(("Q5", "q05"), ("x", None))
    ),
    "a larger list": inputs(unjudged_queries=400, unmatched_queries=(("x", None),)),
    "a fifth unjudged": unjudged(0.2),
    "an unknown share unjudged": unjudged(None),
    "complete judgments": unjudged(0.9, judgments="complete"),
    "more than a fifth unjudged": unjudged(0.21),
    "two systems unjudged, sparse judgments": unjudged(0.21, 0.1, 0.5, judgments="sparse"),
    "unjudged, with no irrelevant judgment": unjudged(0.5, has_irrelevant_judgments=False),
    "measures deeper than top_k": collection(
        cut("base", None, 0.5, 0.4),
        cut("ten", 10, 0.9, 0.8),
        cut("hundred", 100, 0.1, 0.1),
        measures=(cases.PRIMARY, "R@100", "AP"),
    ),
    "a measure as deep as top_k": collection(BASE, cut("x", 10, 0.9, 0.8)),
    "unjudged documents decide": compare(BASE, HIGH, comparisons=[DECIDED]),
    "better despite unjudged documents": compare(
        BASE, HIGH, comparisons=[compared("high", 0.4, "better", unjudged=UNJUDGED)]
    ),
    "ties on one query": ties(1),
    "ties on two queries": ties(2),
    "ties of several systems": ties(0, 3, 2),
    "unknown ties": ties(None),
    "ties inside sources": tied_inside(source_ties=SOURCE_TIES),
    **{
        f"absence under {method}, {missing}, {normalize}, lowest {lowest:g}": absent(
            method, missing, normalize, lowest
        )
        for method, missing, normalize, lowest in (
            ("weighted_score", "zero", {"method": "none"}, -1.0),
            ("weighted_score", "zero", "arctan", -1.0),
            ("comb_sum", None, None, -1.0),
            ("weighted_score", "zero", {"method": "none"}, 0.0),
            ("weighted_score", "zero", {"method": "min_max"}, -1.0),
            ("weighted_score", "skip", {"method": "none"}, -1.0),
            ("rrf", None, None, -1.0),
        )
    },
}


def _findings_of(report: Report, found: Collection) -> tuple[Finding, ...]:
    return (decision_finding(report, found), *collection_findings(report, found))


def _findings_of_all() -> Mapping[str, Iterable[Finding]]:
    return {
        **{name: _findings_of(cases.report(found), found) for name, found in COLLECTIONS.items()},
        "a caveat, version 2 disabled": _findings_of(
            cases.report(collection(BASE), v2=False, settings={"caveat": "Only a sample."}),
            collection(BASE),
        ),
        "no groups": grouped((0.5, 0.5, 0.1, 0.1), groups=("a", "b", "c", "d")),
        **{
            f"groups: {grouping}, {len(set(groups))} of 4": grouped(
                (0.5, 0.5, 0.1, 0.1), groups=groups, grouping=grouping
            )
            for grouping in ("auto", "none")
            for groups in (GROUPS, ("a", "b", "c", "d"))
        },
        "groups, one system": grouped((0.5, 0.6, 0.3, 0.4)),
        "groups, two systems": grouped((0.5, 0.6, 0.3, 0.4), (0.5, 0.2, 0.8, 0.5)),
        "groups, no difference": grouped((0.1, 0.2, 0.3, 0.4)),
        "best group of one": answers("a"),
        "best group of two": answers("a", "b"),
        "best group of all": answers("a", "b", "c", "d"),
        "two systems": answers("a", "b", systems=2),
        "no best group": answers(),
        "299 queries": answers(answer="better", groups=299),
        "300 queries": answers(answer="better", groups=300),
        "30 groups": answers(answer="better", groups=30),
        "3 queries": answers(answer="better", groups=3),
        "3 queries, nothing shown": answers(groups=3),
    }


FINDINGS = _findings_of_all()
