"""Rules about scores: what drops documents, and what the absence of one counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fusion_bench.checks import lint_rule
from fusion_bench.checks.records import Severity
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.abstain import FUSED_MARGIN, FUSED_TOP, LIST_TOP, RERANK_TOP
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import KEYWORD
from fusion_bench.methods.fuse.weighted_score import CombSum, WeightedScore, WeightedSum
from fusion_bench.ranking.plain_systems import needs_fitting

#: A threshold that keeps documents down to this rank in all lists cuts no more than a final list.
DEEP_ENOUGH = 10
#: The deepest rank that is looked at.
DEEPEST = 1000


@lint_rule.register_rule("min-relevance-drops")
def check_min_relevance_drops(subject: lint_rule.Subject) -> Iterator[lint_rule.Problem]:
    """The threshold lies above what ranks can score.

    Documents that one list ranks first, or all lists in the top 10, and that are dropped.
    """
    limit, fusion = subject.system.min_relevance, subject.rank_fusion
    if limit is None or fusion is None or not isinstance(subject.system.blend, NoBlend):
        return
    single = subject.score_at({subject.heaviest: 1}) / subject.divisor
    ranks = np.tile(np.arange(1, DEEPEST + 1), (len(subject.sources), 1))
    is_kept = subject.scores_at(ranks) / subject.divisor >= limit
    kept = int(is_kept.argmin()) if not is_kept.all() else DEEPEST
    if kept >= DEEP_ENOUGH and single >= limit:
        return
    message = f"min_relevance {limit:g} drops most documents: " + (
        f"one that every list ranks first scores {subject.greatest_score:.4f}"
        if not kept
        else _describe_kept(subject, single, limit, kept)
    )
    location = ("min_relevance",)
    yield lint_rule.Problem(
        message, location, lambda: _build_drop_witness(subject, single, limit, kept)
    )


def _describe_kept(subject: lint_rule.Subject, single: float, limit: float, kept: int) -> str:
    top = f"scores go up to {subject.greatest_score:.4f}"
    common = f"one that all lists rank alike stays down to rank {kept}"
    if single >= limit:
        return f"{top}; {common}"
    return f"{top}; one that a single list returns scores at most {single:.4f}; {common}"


def _build_drop_witness(
    subject: lint_rule.Subject, single: float, limit: float, kept: int
) -> lint_rule.Witness:
    """The first document that all lists rank alike and lose, and one of a single list."""
    ranks = {"d1": dict.fromkeys(subject.sources, kept + 1)}
    claim = f"every list ranks d1 {kept + 1}; it is dropped"
    if single < limit and kept and len(subject.sources) > 1:
        ranks["d2"] = {subject.heaviest: 1}
        claim += f", and so is d2, which {subject.heaviest} alone ranks first"
    return subject.make_witness(
        claim, lint_rule.rank_lists(ranks), dropped=tuple(ranks), system=subject.system
    )


#: Normalizers that make the lower half of every list negative.
ALWAYS_NEGATIVE = frozenset({"z_score"})
#: Normalizers that leave negative scores negative.
KEEPS_SIGN = frozenset({"none", "max", "l2", "arctan"})


@lint_rule.register_rule("missing-zero-negative", facts={"roles"})
def check_missing_zero_negative(subject: lint_rule.Subject) -> Iterator[lint_rule.Problem]:
    """A document that a list lacks beats those it scores below 0.

    Absence that counts 0, with a normalizer that gives or keeps negative scores.
    """
    fusion = subject.system.fusion
    if isinstance(fusion, WeightedScore | WeightedSum) and fusion.missing == "zero":
        rule, location = "missing: zero", ("fusion", "missing")
    elif isinstance(fusion, CombSum):
        rule, location = "comb_sum", ("fusion", "method")
    else:
        return
    name = fusion.normalize.method
    negative = [  # the scores of a search by words, such as BM25, are at least 0
        source
        for source in subject.sources
        if name in ALWAYS_NEGATIVE
        or (name in KEEPS_SIGN and KEYWORD not in subject.roles_of(source))
    ]
    if not negative or len(subject.sources) < 2:
        return
    is_certain = name in ALWAYS_NEGATIVE
    if not is_certain and subject.dataset is None:
        return
    source = negative[0]
    weights = subject.weights or {}
    loss = weights[source] / (sum(weights.values()) if isinstance(fusion, WeightedScore) else 1)
    why = (
        "gives every score below its list's mean a negative value"
        if is_certain
        else f"leaves scores below 0 negative, which {', '.join(negative)} may have"
    )
    message = (
        f"{rule} counts 0 where a list lacks a document, and normalize: {name} {why}: "
        f"a document that {source} scores one unit below 0 falls {loss:.3f} behind one that "
        f"{source} does not return"
    )
    severity: Severity = "warning" if is_certain else "note"
    yield lint_rule.Problem(
        message, location, lambda: _build_missing_witness(subject, source), severity
    )


def _build_missing_witness(subject: lint_rule.Subject, source: str) -> lint_rule.Witness:
    """Two documents that another list scores alike; one of them is last in the source's list."""
    other = next(name for name in subject.sources if name != source)
    lists: dict[str, lint_rule.RankedList] = {
        source: {"d3": (1, 1.0), "d2": (2, -1.0)},
        other: {"d1": (1, 1.0), "d2": (2, 1.0)},
    }
    return subject.make_witness(
        f"{other} scores d1 and d2 alike; {source} scores d2 below 0 and does not return d1; d1 "
        "wins",
        lists,
        above=(("d1", "d2"),),
    )


@lint_rule.register_rule("missing-skip-unasked")
def check_missing_skip_unasked(subject: lint_rule.Subject) -> Iterator[lint_rule.Problem]:
    """Without ``missing``, a document of one list beats those of all.

    A mean of scaled scores that leaves out, by default, the lists that lack a document.
    """
    fusion = subject.system.fusion
    if not isinstance(fusion, WeightedScore) or not fusion.skips_unasked:
        return
    if len(subject.sources) < 2:
        return
    first, scores = subject.heaviest, (1.0, 0.9, 0.1)
    lists: dict[str, lint_rule.RankedList] = {
        name: {
            document: (rank, score)
            for rank, (document, score) in enumerate(zip(names, scores, strict=True), start=1)
        }
        for name in subject.sources
        for names in [("d1", "d2", "d3") if name == first else ("d2", "d3", "d4")]
    }
    witness = subject.make_witness(
        f"{first} alone returns d1; every list returns d2 and d3; d1 wins",
        lists,
        above=(("d1", "d2"), ("d1", "d3")),
    )
    outcome, failed = lint_rule.reproduce(witness)
    if failed:  # the normalizer flattens the scores or turns them round
        return
    name = fusion.normalize.method
    remedy = "min" if name in ALWAYS_NEGATIVE | KEEPS_SIGN else "zero"
    message = (
        "missing is not written, so lists that lack a document are left out of its mean: d1, "
        f"which {subject.heaviest} alone returns, scores {outcome.scores['d1']:.3f} and is put "
        f"above d2 with {outcome.scores['d2']:.3f}, which all lists return: write 'missing: "
        f"{remedy}', or 'missing: skip' if it is meant"
    )
    yield lint_rule.Problem(message, ("fusion", "missing"), lambda: witness)


#: Lists of two queries, and of a third with more documents: every source has the same.
AGREED = tuple(
    {f"d{rank}": (rank, score) for rank, score in enumerate(scores, 1)}
    for scores in ((3.0, 2.0, 1.0), (30.0, 8.0, 1.0), (9.0, 5.0, 3.0, 1.0))
)


@lint_rule.register_rule("threshold-on-ranks")
def check_threshold_on_ranks(subject: lint_rule.Subject) -> Iterator[lint_rule.Problem]:
    """The signal of ``abstain`` is the same for all lists that agree.

    A fused signal that no score changes if the lists agree on the first documents.
    """
    system, abstain = subject.system, subject.whole.abstain
    if abstain is None or abstain.signal not in {FUSED_TOP, FUSED_MARGIN}:
        return
    if subject.query_class is not None or needs_fitting(system):
        return  # it differs by query, or by what is learned
    is_top = abstain.signal == FUSED_TOP
    claim = "every list scores d1 3 and d2 2; with 30 and 8 the signal would be the same"
    witnesses = [
        subject.make_witness(claim, dict.fromkeys(subject.sources, each)) for each in AGREED
    ]
    try:
        shown = [lint_rule.reproduce(each)[0].scores for each in witnesses]
    except FusionBenchError:
        return  # a method that needs more than these lists
    values = [each["d1"] - (0 if is_top else each["d2"]) for each in shown]
    if values[0] != values[1]:
        return
    value = f", {values[0]:.4g}," if values[0] == values[2] else ""
    message = (
        f"abstain: {abstain.signal} has one value{value} for all queries whose lists agree on "
        f"the first {'document' if is_top else 'two documents'}, relevant or not"
    )
    above, fusion = abstain.above, subject.rank_fusion
    if above is not None and fusion is not None and is_top:
        least = min(subject.score_at({name: 1}) for name in subject.sources) / subject.divisor
        if above >= subject.greatest_score:
            message += f"; none is greater, so {above:g} answers no query"
        elif above < least:
            message += f"; no list gives less than {least:.4g}, so {above:g} answers every "
            message += "query that has a result"
    other = RERANK_TOP if RERANK_TOP in system.signals else f"{LIST_TOP}{subject.heaviest}"
    message += (
        f": write 'signal: {other}', or run fusion-bench threshold, which finds the signals "
        "that can carry a threshold"
    )
    witness = replace(witnesses[0], scores=shown[0])
    yield lint_rule.Problem(message, ("abstain", "signal"), lambda: witness)
