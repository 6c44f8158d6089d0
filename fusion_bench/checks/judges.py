"""Who gave the grades: a machine judge, its agreement with people, the lists of its family."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from fusion_bench.checks.records import MIN_PAIRS, DataWarning, JudgeInfo, ListInfo
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.run import Run
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset, load_judge
from fusion_bench.util.formatting import format_interval, format_number, list_names, pluralize


@dataclass(frozen=True)
class DeclaredFamily:
    """A list, and the family of the model that made it; None = none, or not declared."""

    name: str
    kind: str
    family: str | None


#: What of a list is read here.
ListFamily: TypeAlias = ListInfo | DeclaredFamily


def list_families(dataset: Dataset) -> list[DeclaredFamily]:
    """The family of each list that was read."""
    return [
        DeclaredFamily(name, kind, family_of(dataset, run))
        for kind, lists in (("run", dataset.runs), ("rerank", dataset.rerankers))
        for name, run in lists.items()
    ]


def find_related_systems(systems: Iterable[System], family: str | None) -> tuple[str, ...]:
    """The systems that declare a family, or one of whose stages does.

    Args:
        systems: The systems.
        family: The family; None = not known.
    """
    if family is None:
        return ()
    names = (s.name for s in systems if any(part.family == family for _, part in s.list_parts()))
    return tuple(dict.fromkeys(names))


def family_of(dataset: Dataset, run: Run) -> str | None:
    """The family behind one list."""
    is_rerank = dataset.rerankers.get(run.name) is run
    spec = (dataset.spec.rerank if is_rerank else dataset.spec.runs).get(run.name)
    return None if spec is None else spec.family


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
    """Warnings on the judges: their kind, their agreement, and lists of the same model family.

    Args:
        judge: The machine judge; None = people.
        lists: The lists that the systems read.
    """
    if judge is None:
        return
    who = "of no declared family" if judge.family is None else f"of the family {judge.family}"
    text = f"The grades are those of a machine judge {who}. {_describe_agreement(judge)}"
    if judge.family is None:
        text += (
            " Without its family, nobody can tell whether it judges lists of its own family: add "
            "'family' to 'qrels', and to the runs and rerank lists that a model made."
        )
    yield DataWarning(key=MACHINE_JUDGE, text=text, evidence=judge.model_dump(mode="json"))
    yield from _warn_shared_family(judge, lists)


def _describe_agreement(judge: JudgeInfo) -> str:
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


def _warn_shared_family(
    judge: JudgeInfo, lists: Iterable[ListFamily], who: str = "The judge"
) -> Iterator[DataWarning]:
    """The lists and systems of the judge's own family, and what to do; nothing = none is known."""
    same = (each for each in lists if judge.family and each.family == judge.family)
    shared = [f"{each.name} ({each.kind})" for each in same]
    shared += [f"{name} (system)" for name in judge.related_systems]
    if shared:
        verb = "is" if len(shared) == 1 else "are"
        text = (
            f"{who} is of the family {judge.family}, and so {verb} {list_names(shared)}. A model "
            "may prefer what its own family ranks high: take the grades of people or of another "
            "family as 'qrels'."
        )
        evidence = {"family": judge.family, "shared": shared}
        yield DataWarning(key=SHARED_FAMILY, text=text, evidence=evidence)


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
        yield DataWarning(key=OTHER_SCALE, text=text, evidence={"greatest_grades": greatest})


def _format_kappa(kappa: float | None, low: float | None, high: float | None) -> str:
    if kappa is None:
        return "not defined"
    interval = "" if low is None else f" {format_interval(low, high)}"
    return f"{format_number(kappa)}{interval}"


def describe_judge(dataset: Dataset, systems: Iterable[System] = ()) -> JudgeInfo | None:
    """The judge of a dataset's judgments where it is a machine; None = people gave the grades.

    Args:
        dataset: The dataset.
        systems: Those that are evaluated.

    Raises:
        DataError: The file of a human judge breaks a rule.
    """
    spec = dataset.spec
    if spec.qrels is None or spec.qrels.kind == "human":
        return None
    known = {
        "family": spec.qrels.family,
        "related_systems": find_related_systems(systems, spec.qrels.family),
        "is_accepted": spec.qrels.unmeasured == "accept",
    }
    from fusion_bench.stats.agreement import (  # late: most grades are people's
        make_weights,
        measure_kappa,
        pair_grades,
    )

    pairs = {
        name: pair_grades(load_judge(dataset, name), dataset.qrels)
        for name, judge in spec.judges.items()
        if judge.kind == "human"
    }
    if not pairs:
        return JudgeInfo.model_validate(known)
    name = max(pairs, key=lambda judge: int(pairs[judge].counts.sum()))
    chosen = pairs[name]
    graded = measure_kappa(chosen.counts, make_weights(chosen.grades, "none"))
    counts = chosen.binary_counts(spec.binary_relevance)
    binary = measure_kappa(counts, make_weights((0, 1), "none"))
    return JudgeInfo(
        pairs=int(chosen.counts.sum()),
        queries=len(chosen.queries),
        kappa=graded.value,
        low=graded.low,
        high=graded.high,
        binary_kappa=binary.value,
        binary_low=binary.low,
        binary_high=binary.high,
        people=name,
    ).model_copy(update=known)


def find_dataset_warnings(dataset: Dataset, systems: Iterable[System]) -> tuple[DataWarning, ...]:
    """What speaks against the judge of a dataset's judgments.

    Args:
        dataset: With the lists that the systems read.
        systems: These systems.
    """
    return tuple(find_judge_warnings(describe_judge(dataset, systems), list_families(dataset)))


def find_shared_families(
    dataset: Dataset, judges: Iterable[str], systems: Collection[System]
) -> Iterator[DataWarning]:
    """The judges whose family also made a list that the systems read, or works in a system.

    Args:
        dataset: With these lists.
        judges: Names of ``judges``, or ``qrels``.
        systems: These systems.
    """
    lists = list_families(dataset)
    for name in judges:
        spec = dataset.spec.judges.get(name) or dataset.spec.qrels
        family = None if spec is None else spec.family
        judge = JudgeInfo(family=family, related_systems=find_related_systems(systems, family))
        yield from _warn_shared_family(judge, lists, f"Judge {name!r}")


def find_judge_refusals(dataset: Dataset, systems: Iterable[System]) -> Iterator[str]:
    """A judge whose family made a list that was read, and one not shown to agree with people.

    Args:
        dataset: With the lists that the compared systems read.
        systems: These systems.
    """
    judge = describe_judge(dataset, systems)
    if judge is None:
        return
    for shared in _warn_shared_family(judge, list_families(dataset)):
        yield f"{dataset.name}: the grades are circular. {shared.text.removesuffix('.')}"
    if not judge.is_better_than_chance and not judge.is_accepted:
        yield (
            f"{dataset.name}: the grades are those of a machine judge. "
            f"{_describe_agreement(judge)} Or say 'unmeasured: accept' under 'qrels'"
        )
