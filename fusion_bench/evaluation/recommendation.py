"""What to do after a comparison: use a system, keep the baseline, judge first, add queries.

Within the first group no system is shown to be better than another, so that a higher mean is no
reason to prefer one: the preferred system is the one that costs least to run and to explain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pydantic import BaseModel

from fusion_bench.config.json_records import compute_once
from fusion_bench.evaluation.report_records import Collection, ComparisonResult
from fusion_bench.experiment.system import System
from fusion_bench.stats.comparison import BETTER

#: Fields of a method that name something instead of setting a number.
NAMING_FIELDS = frozenset({"method", "reranker"})
#: Fields of a system that are no parameters of it.
SYSTEM_FIELDS = frozenset({"name", "runs", "stages"})


class Effort(NamedTuple):
    """What a system takes, in the order in which less of it is preferred.

    Attributes:
        calls: Documents that rerankers score for a query at most; infinite without a depth.
        sources: Ranked lists that it reads.
        settings: Parameters that differ from their defaults.
    """

    calls: float
    sources: int
    settings: int


@dataclass(frozen=True)
class Preference:
    """The system to use of those shown to be better than the baseline.

    Attributes:
        comparison: It against the baseline on the primary measure.
        reason: Why it is preferred to the others; empty = there is no other.
    """

    comparison: ComparisonResult
    reason: str = ""

    @property
    def candidate(self) -> str:
        """The name of the system."""
        return self.comparison.candidate


Kind: TypeAlias = Literal["check the data", "use", "keep", "judge first", "more queries"]


def find_effort(system: System) -> Effort:
    """What a system takes, its stages included."""
    parts = [part for _, part in system.list_parts()]
    depths = {
        (part.blend.reranker_name, getattr(part.blend, "depth", None))
        for part in parts
        if part.blend.reranker_name is not None and getattr(part.blend, "beta", None) != 0
    }
    calls = sum(math.inf if depth is None else depth for _, depth in depths)
    return Effort(calls, len(system.base_runs), sum(_count_settings(part) for part in parts))


def _count_settings(model: BaseModel) -> int:
    """Fields of fusion and blend, however deep, that differ from their defaults."""
    count = 0
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if name in NAMING_FIELDS or (isinstance(model, System) and name in SYSTEM_FIELDS):
            continue
        if isinstance(value, BaseModel):
            count += _count_settings(value)
        elif field.is_required() or value != field.get_default(call_default_factory=True):
            count += len(value) if isinstance(value, Mapping) else 1
    return count


@compute_once
def find_preference(collection: Collection) -> Preference | None:
    """The system that its verdicts allow to recommend; None where none is shown to be better.

    Of the first group, the least effort among those that are better than the baseline; where none
    of the group is, the highest mean of the better ones. Nothing is recommended from data that
    must be checked first.
    """
    if collection.obstacles:
        return None
    better = [item for item in collection.ranked_comparisons if item.answer in BETTER]
    if not better:
        return None
    grouped = [item for item in better if item.candidate in collection.first_group]
    if len(grouped) < 2:
        return Preference((grouped or better)[0])
    efforts = {}
    for name in [item.candidate for item in grouped]:
        config = collection.system(name).config
        efforts[name] = Effort(math.inf, 0, 0)
        if config is not None:
            efforts[name] = find_effort(System.model_validate({**config, "name": name}))
    name, reason = prefer_least(efforts)
    return Preference(next(item for item in grouped if item.candidate == name), reason)


def prefer_least(efforts: Mapping[str, Effort]) -> tuple[str, str]:
    """The first of the systems that take least, and why it is preferred to the others.

    Args:
        efforts: At least one, by system.
    """
    least = min(efforts.values())
    name = next(name for name, effort in efforts.items() if effort == least)
    kinds = ("the fewest model calls", "the fewest lists", "the fewest set parameters")
    for i, kind in enumerate(kinds):
        same = [each for each in efforts.values() if each[:i] == least[:i]]
        if any(each[i] > least[i] for each in same):
            return name, f"it needs {kind}"
    return name, "it is no more complex than the others and has the highest mean of them"


def preferred_system(collection: Collection) -> str:
    """The name of the system to use; the baseline where none is shown to be better."""
    preference = find_preference(collection)
    return collection.baseline if preference is None else preference.candidate


def choose_action(collection: Collection) -> Kind:
    """What the verdicts allow to advise."""
    if collection.obstacles:
        return "check the data"
    if find_preference(collection) is not None:
        return "use"
    comparisons = collection.ranked_comparisons
    if any(item.answer == "unjudged decide" for item in comparisons):
        return "judge first"
    hidden = find_hidden_difference(collection)
    return "more queries" if hidden is not None and hidden.difference > 0 else "keep"


def find_hidden_difference(collection: Collection) -> ComparisonResult | None:
    """That of the first compared system, where these queries are too few to show so little.

    None where a system is shown to be better.
    """
    comparisons = collection.ranked_comparisons
    if not comparisons or collection.obstacles or find_preference(collection) is not None:
        return None
    first = comparisons[0]
    detectable = first.min_detectable_difference or 0.0
    is_hidden = detectable > 0 and abs(first.difference) <= detectable
    return first if first.answer == "not shown" and is_hidden else None
