"""``missing: zero`` beside scores below 0: absence wins over presence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.evaluation.report_records.lint_finding import Severity
from fusion_bench.fuse.comb_sum import CombSum
from fusion_bench.fuse.weighted_score import WeightedScore
from fusion_bench.fuse.weighted_sum import WeightedSum
from fusion_bench.lint._base import Fact, Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import RankedList, Witness, without_blend

#: Normalizers that make the lower half of every list negative.
ALWAYS_NEGATIVE = frozenset({"z_score"})
#: Normalizers that leave negative scores negative.
KEEPS_SIGN = frozenset({"none", "max", "l2", "arctan"})
#: A source with this role has scores of at least 0, as BM25 has.
POSITIVE = "keyword"


@register_rule
class MissingZeroNegative(Rule):
    """``missing-zero-negative``: a document that a list lacks beats those it scores below 0."""

    id: ClassVar[str] = "missing-zero-negative"
    facts: ClassVar[frozenset[Fact]] = frozenset({"roles"})

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """Absence that counts 0, with a normalizer that gives or keeps negative scores."""
        fusion = subject.system.fusion
        if isinstance(fusion, WeightedScore | WeightedSum) and fusion.missing == "zero":
            rule, location = "missing: zero", ("fusion", "missing")
        elif isinstance(fusion, CombSum):
            rule, location = "comb_sum", ("fusion", "method")
        else:
            return
        name = fusion.normalize.method
        negative = [
            source
            for source in subject.sources
            if name in ALWAYS_NEGATIVE
            or (name in KEEPS_SIGN and POSITIVE not in subject.roles_of(source))
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
        severity: Severity = self.severity if is_certain else "note"
        yield Problem(message, location, lambda: _build_witness(subject, source), severity)


def _build_witness(subject: Subject, source: str) -> Witness:
    """Two documents that another list scores alike; one of them is last in the source's list."""
    other = next(name for name in subject.sources if name != source)
    lists: dict[str, RankedList] = {
        source: {"d3": (1, 1.0), "d2": (2, -1.0)},
        other: {"d1": (1, 1.0), "d2": (2, 1.0)},
    }
    return Witness(
        without_blend(subject.system),
        f"{other} scores d1 and d2 alike; {source} scores d2 below 0 and does not return d1; d1 "
        "wins",
        lists,
        above=(("d1", "d2"),),
        dataset=subject.dataset,
    )
