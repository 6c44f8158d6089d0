"""What every report says of a machine judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fusion_bench.data.qrels import Qrels
from fusion_bench.evaluation.judge_checks.list_families import ListFamily
from fusion_bench.evaluation.report_records.data_warning import DataWarning
from fusion_bench.evaluation.report_records.judge_info import MIN_PAIRS, JudgeInfo
from fusion_bench.util.formatting import format_interval, format_number, list_names, pluralize

MACHINE_JUDGE, SHARED_FAMILY, OTHER_SCALE = "machine judge", "shared family", "other scale"
#: The keys of these warnings, which stand before all others.
JUDGE_KEYS = frozenset({MACHINE_JUDGE, SHARED_FAMILY, OTHER_SCALE})
MEASURE_IT = (
    f"let people grade {MIN_PAIRS} of the same pairs or more, and name their file under 'judges' "
    "of dataset.yaml: {people: {path: people.csv, kind: human}}"
)

TAKE_OTHERS = (
    "Take the grades of people or of another judge as 'qrels', or let people grade more of the "
    "same pairs."
)


def find_judge_warnings(
    judge: JudgeInfo | None, lists: Iterable[ListFamily]
) -> Iterator[DataWarning]:
    """Who gave the grades, how far people agree, and which lists come from the same family.

    Args:
        judge: The machine judge; None = people.
        lists: The lists that the systems read.
    """
    if judge is None:
        return
    who = "of no declared family" if judge.family is None else f"of the family {judge.family}"
    text = f"The grades are those of a machine judge {who}. {describe_agreement(judge)}"
    if judge.family is None:
        text += (
            " Without its family, nobody can tell whether it judges lists of its own family: add "
            "'family' to 'qrels', and to the runs and rerank lists that a model made."
        )
    yield DataWarning(key=MACHINE_JUDGE, text=text)
    if shared := describe_shared_family(judge, lists):
        yield DataWarning(key=SHARED_FAMILY, text=shared)


def describe_agreement(judge: JudgeInfo) -> str:
    """Its agreement with people in a sentence; or that it was not measured, and what to do."""
    if judge.people is None or not judge.pairs:
        return f"Its agreement with people was never measured: {MEASURE_IT}."
    graded = _format_kappa(judge.kappa, judge.low, judge.high)
    binary = _format_kappa(judge.binary_kappa, judge.binary_low, judge.binary_high)
    place = f"{pluralize(judge.pairs, 'pair')} of {pluralize(judge.queries, 'query')}"
    agreement = (
        f"agreement with people ({judge.people}): Cohen's κ {graded} graded, {binary} relevant or "
        f"not, over {place}"
    )
    if judge.is_better_than_chance:
        return f"Its {agreement}."
    if judge.is_measured:
        return (
            f"It is not shown to agree with people better than chance, as the interval of κ is not "
            f"above 0: {agreement}. {TAKE_OTHERS}"
        )
    if judge.kappa is None:
        return f"Nothing measures its {agreement}, as both give one grade alone: {MEASURE_IT}."
    return f"Too few pairs measure its {agreement}: {MEASURE_IT}."


def describe_shared_family(
    judge: JudgeInfo, lists: Iterable[ListFamily], *, who: str = "The judge"
) -> str:
    """The lists and systems of the judge's own family, and what to do; empty = none is known."""
    same = (each for each in lists if judge.family and each.family == judge.family)
    shared = [f"{each.name} ({each.kind})" for each in same]
    shared += [f"{name} (system)" for name in judge.related_systems]
    if not shared:
        return ""
    names = list_names(shared)
    verb = "is" if len(shared) == 1 else "are"
    return (
        f"{who} is of the family {judge.family}, and so {verb} {names}. A model may prefer "
        "what its own family ranks high: take the grades of people or of another family as 'qrels'."
    )


def find_scale_warnings(grades: Mapping[str, Qrels]) -> Iterator[DataWarning]:
    """Whether judges that are compared may have graded on different scales.

    Args:
        grades: By judge.
    """
    greatest = {name: int(each.grades.max()) for name, each in grades.items() if len(each.grades)}
    if len(set(greatest.values())) > 1:
        pairs = "; ".join(f"{grade} of {name!r}" for name, grade in greatest.items())
        text = (
            f"The greatest grades differ: {pairs}. If these judges have different scales, bring "
            "them onto that of the judgments with 'map' under 'judges' of dataset.yaml."
        )
        yield DataWarning(key=OTHER_SCALE, text=text)


def _format_kappa(kappa: float | None, low: float | None, high: float | None) -> str:
    if kappa is None:
        return "not defined"
    interval = "" if low is None else f" {format_interval(low, high)}"
    return f"{format_number(kappa)}{interval}"
