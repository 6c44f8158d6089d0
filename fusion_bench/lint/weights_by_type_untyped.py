"""Parameters by query type or intent on queries without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from fusion_bench.lint._base import Fact, Problem, Rule, register_rule
from fusion_bench.lint._subject import Subject
from fusion_bench.lint._witness import Witness, rank_lists, without_blend


@register_rule
class WeightsByTypeUntyped(Rule):
    """``weights-by-type-untyped``: every query gets the parameters of the fallback."""

    id: ClassVar[str] = "weights-by-type-untyped"
    facts: ClassVar[frozenset[Fact]] = frozenset({"types"})

    def find_problems(self, subject: Subject) -> Iterator[Problem]:
        """A dataset none of whose types or intents the system names."""
        key, known = subject.whole.class_key, subject.whole.query_classes
        if key is None or known is None or not subject.is_fallback or subject.dataset is None:
            return
        if subject.whole.types in {"hybrid", "predicted"}:
            return
        values = subject.dataset.classes(key)
        if values is None or values & set(known) - {key.fallback}:
            return
        named = ", ".join(name for name in known if name != key.fallback) or "none"
        listed = ", ".join(sorted(values))
        given = f"has the {key.field}s {listed}" if values else f"has no {key.title}s"
        message = (
            f"{subject.dataset.name} {given}, and the parameters are by {key.field} ({named}): "
            f"every query gets those of {key.fallback!r}"
        )
        location = (subject.whole.class_field,)
        yield Problem(message, location, lambda: _build_witness(subject), of_whole=True)


def _build_witness(subject: Subject) -> Witness:
    """A query without the field, with the whole system and with the one of the fallback."""
    names = subject.system.runs
    ranks = {f"d{i}": {name: 1 + (i + s) % 3 for s, name in enumerate(names)} for i in range(3)}
    return Witness(
        without_blend(subject.whole).model_copy(update=_without_blends(subject)),
        f"without a known {subject.class_field} the query gets the list of {subject.query_class!r}",
        rank_lists(ranks),
        same_as=without_blend(subject.system),
        dataset=subject.dataset,
    )


def _without_blends(subject: Subject) -> dict[str, object]:
    """The parts by class, their blends left out."""
    parts = subject.whole.class_configs
    if parts is None:
        return {}
    plain = without_blend(subject.system).blend
    by_class = {name: part.model_copy(update={"blend": plain}) for name, part in parts.items()}
    return {subject.whole.class_field: by_class}
