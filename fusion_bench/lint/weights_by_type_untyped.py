"""Parameters by query type on queries without types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.config.query_types import UNSURE
from fusion_bench.lint._base import Fact, Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend


@register_rule
class WeightsByTypeUntyped(Rule):
    """``weights-by-type-untyped``: every query gets the parameters of ``hybrid``."""

    id: ClassVar[str] = "weights-by-type-untyped"
    facts: ClassVar[frozenset[Fact]] = frozenset({"types"})

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """A dataset none of whose types the system names."""
        known = subject.whole.query_types
        if known is None or subject.query_type != UNSURE or subject.dataset is None:
            return
        types = subject.dataset.types
        if types is None or types & set(known) - {UNSURE}:
            return
        named = ", ".join(name for name in known if name != UNSURE) or "none"
        given = f"has the types {', '.join(sorted(types))}" if types else "has no query types"
        message = (
            f"{subject.dataset.name} {given}, and the parameters are by type ({named}): every "
            f"query gets those of {UNSURE!r}"
        )
        key = "by_query_type" if subject.whole.weights_by_type is None else "weights_by_type"
        yield Problem(message, (key,), lambda: _build_witness(subject), of_whole=True)


def _build_witness(subject: Subject) -> Witness:
    """A query without a type, with the whole system and with the one for ``hybrid``."""
    names = subject.system.runs
    ranks = {f"d{i}": {name: 1 + (i + s) % 3 for s, name in enumerate(names)} for i in range(3)}
    return Witness(
        without_blend(subject.whole).model_copy(update=_without_blends(subject)),
        f"without a type the query gets the list of {UNSURE!r}",
        rank_lists(ranks),
        same_as=without_blend(subject.system),
        dataset=subject.dataset,
    )


def _without_blends(subject: Subject) -> dict[str, object]:
    """The parts by type, their blends left out."""
    parts = subject.whole.by_query_type
    if parts is None:
        return {}
    plain = without_blend(subject.system).blend
    by_type = {name: part.model_copy(update={"blend": plain}) for name, part in parts.items()}
    return {"by_query_type": by_type}
