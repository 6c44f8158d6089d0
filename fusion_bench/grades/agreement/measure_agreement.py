"""Agreement of each two judges, from the pairs that both graded."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import get_args

import numpy as np

from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.qrels import Qrels
from fusion_bench.errors import ConfigError, DataError, UnknownNameError
from fusion_bench.grades.agreement.records import (
    AgreementReport,
    GradeAgreement,
    KappaResult,
    PairAgreement,
    QueryAgreement,
)
from fusion_bench.io.specs.judgment_specs import JudgeKind
from fusion_bench.stats.agreement.grade_pairs import GradePairs, pair_grades
from fusion_bench.stats.agreement.kappa import Kappa, Weighting, make_weights, measure_kappa

#: Most queries that are listed because they lower κ.
MOST_QUERIES = 5


@dataclass(frozen=True)
class JudgeGrades:
    """The grades of one judge.

    Attributes:
        qrels: The grades.
        kind: People or a machine; None = not known.
    """

    qrels: Qrels
    kind: JudgeKind | None = None


def measure_agreement(
    judges: Mapping[str, JudgeGrades],
    *,
    binary_relevance: int,
    weighting: Weighting = "none",
    references: Collection[str] = (),
) -> AgreementReport:
    """Agreement of each judge with each reference judge.

    Args:
        judges: Grades by judge, at least two.
        binary_relevance: Grade from which a document counts as relevant.
        weighting: With another than ``none``, weighted κ too.
        references: The judges that others are compared with; by default those of kind ``human``,
            and where there are none, every two judges are compared.

    Raises:
        UnknownNameError: A reference is no judge.
        ConfigError: There are fewer than two judges, or no such weighting or grade of relevance.
        DataError: No two judges graded the same document.
    """
    if weighting not in get_args(Weighting):
        raise ConfigError(f"weighting: {weighting!r} is none of {', '.join(get_args(Weighting))}")
    if binary_relevance < 1:
        raise ConfigError(f"binary_relevance: at least 1 is needed, not {binary_relevance}")
    for name in references:
        if name not in judges:
            raise UnknownNameError("judge", name, judges, where="--people")
    if len(judges) < 2:
        raise ConfigError(
            f"agreement needs two judges, given {', '.join(judges) or 'none'}: name another file "
            "of grades, or add one under 'judges' of dataset.yaml"
        )
    comparisons = tuple(
        _compare_judges(pair, judges, binary_relevance, weighting)
        for pair in _choose_pairs(judges, references)
    )
    if not any(each.pairs for each in comparisons):
        raise DataError(
            f"no two of the judges {', '.join(judges)} graded the same document: check that their "
            "files use the same query and document ids"
        )
    return AgreementReport(
        binary_relevance=binary_relevance, weighting=weighting, comparisons=comparisons
    )


def _choose_pairs(
    judges: Mapping[str, JudgeGrades], references: Collection[str]
) -> Sequence[tuple[str, str]]:
    """Reference and judge of each comparison; two references are compared once."""
    chosen = [*references] or [name for name, judge in judges.items() if judge.kind == "human"]
    ordered = [*chosen, *(name for name in judges if name not in chosen)]
    pairs = combinations(ordered, 2)
    return [pair for pair in pairs if not chosen or pair[0] in chosen]


def _compare_judges(
    names: tuple[str, str],
    judges: Mapping[str, JudgeGrades],
    binary_relevance: int,
    weighting: Weighting,
) -> PairAgreement:
    first, second = (judges[name] for name in names)
    pairs = pair_grades(first.qrels, second.qrels)
    total, count = pairs.total, int(pairs.counts.sum())
    graded = measure_kappa(pairs.counts, make_weights(pairs.grades, "none"))
    binary = measure_kappa(pairs.binary_counts(binary_relevance), make_weights((0, 1), "none"))
    weighted = None
    if weighting != "none":
        weighted = _record(measure_kappa(pairs.counts, make_weights(pairs.grades, weighting)))
    distance = np.subtract.outer(np.array(pairs.grades), np.array(pairs.grades)).T
    return PairAgreement(
        reference=names[0],
        judge=names[1],
        reference_kind=first.kind,
        judge_kind=second.kind,
        queries=len(pairs.queries),
        pairs=count,
        equal=float(np.trace(total) / count) if count else None,
        mean_difference=float((distance * total).sum() / count) if count else None,
        graded=_record(graded),
        weighted=weighted,
        binary=_record(binary),
        grades=pairs.grades,
        confusion=tuple(tuple(row) for row in total.tolist()),
        per_grade=tuple(_list_grades(pairs.grades, total)),
        lowering=tuple(_list_lowering(pairs, graded)),
    )


def _record(kappa: Kappa) -> KappaResult:
    return KappaResult(kappa=kappa.value, low=kappa.low, high=kappa.high)


def _list_grades(grades: Sequence[int], total: IntArray) -> Iterator[GradeAgreement]:
    for i, grade in enumerate(grades):
        reference, judge, both = total[i].sum(), total[:, i].sum(), total[i, i]
        yield GradeAgreement(
            grade=grade,
            reference=int(reference),
            judge=int(judge),
            both=int(both),
            recall=float(both / reference) if reference else math.nan,
            precision=float(both / judge) if judge else math.nan,
        )


def _list_lowering(pairs: GradePairs, kappa: Kappa) -> Iterator[QueryAgreement]:
    """The queries without which κ is higher, by how much it is."""
    without: FloatArray = np.nan_to_num(kappa.without_query, nan=-math.inf)
    for q in np.argsort(-without, kind="stable")[:MOST_QUERIES].tolist():
        if without[q] > kappa.value:
            counts = pairs.counts[q]
            yield QueryAgreement(
                query=pairs.queries[q],
                pairs=int(counts.sum()),
                equal=float(np.trace(counts) / counts.sum()),
                kappa_without=float(without[q]),
            )
