"""The ``gate:`` key of an experiment: tolerances, guards, and what blocks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from fusion_bench.config.fields.conditions import check_field_name
from fusion_bench.config.models import StrictModel, UniqueNames
from fusion_bench.measures.aliases import MeasureName, resolve_alias

#: What a status that is no pass does: it blocks, or it is a warning.
BlockOrWarn: TypeAlias = Literal["block", "warn"]
#: Value of ``inconclusive`` in earlier versions → what to write now.
OLD_VALUES: Final = {"fail": "block", "pass": "warn"}


def _refuse_old_values(value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The value.

    Raises:
        ValueError: An earlier version called it so.
    """
    if isinstance(value, str) and value in OLD_VALUES:
        raise ValueError(f"'{value}' is called '{OLD_VALUES[value]}' now")
    return value


def _name_slices(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """Slices by name: a query type is its own, a value of another field is ``field: value``."""
    return [*map(_name_slice, data)] if isinstance(data, list | tuple) else data


def _name_slice(item: Any) -> Any:  # noqa: ANN401 - as above
    if not isinstance(item, Mapping):
        return item
    if len(item) != 1:
        raise ValueError(f"a slice is one field and its value, such as intent: meta, given {item}")
    [(field, value)] = item.items()
    if isinstance(value, list | tuple | Mapping) or value is None:
        raise ValueError(f"{field}: one value is needed, such as {field}: meta, given {value}")
    text = value if isinstance(value, str) else json.dumps(value)
    return text if field == "type" else f"{check_field_name(str(field))}{SEPARATOR}{text}"


def split_slice(name: str) -> tuple[str, str]:
    """The field of a slice, and the value that its queries have there."""
    field, separator, value = name.partition(SEPARATOR)
    return (field, value) if separator else ("type", name)


#: Between the field and the value in the name of a slice.
SEPARATOR: Final = ": "
#: Names of different slices.
Slices: TypeAlias = Annotated[UniqueNames, BeforeValidator(_name_slices)]


class Tolerance(StrictModel):
    """How much one measure may fall.

    Attributes:
        max_drop: m, in the unit of the measure: a mean that falls by no more is no regression.
        max_drop_since_anchor: The same for all changes since the anchor together; by default 2m.
        slices: Slices that are checked on their own, instead of the policy's; as there.
    """

    max_drop: Annotated[float, Field(ge=0)]
    max_drop_since_anchor: Annotated[float, Field(ge=0)] | None = None
    slices: Slices | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Tolerance:
        if self.since_anchor < self.max_drop:
            raise ValueError(
                f"max_drop_since_anchor: at least max_drop, {self.max_drop:g}, is needed, given "
                f"{self.since_anchor:g}"
            )
        return self

    @property
    def since_anchor(self) -> float:
        """The tolerance of all changes since the anchor together."""
        limit = self.max_drop_since_anchor
        return 2 * self.max_drop if limit is None else limit

    @property
    def stated_limits(self) -> dict[str, float]:
        """Name → value of each limit that the experiment states."""
        limits = {
            "max_drop": self.max_drop,
            "max_drop_since_anchor": self.max_drop_since_anchor,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}


class CandidateBudget(StrictModel):
    """The level is shared by several candidates.

    Attributes:
        max: Different candidates that may be checked between two updates of the baseline.
    """

    max: Annotated[int, Field(ge=1, le=10_000)]


def _refuse_repeats(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The same data.

    Raises:
        ValueError: Two keys name one measure.
    """
    first: dict[str, str] = {}
    for key in data if isinstance(data, Mapping) else ():
        name = resolve_alias(str(key))
        if name in first:
            raise ValueError(f"{first[name]} and {key} are one measure, {name}: keep one")
        first[name] = str(key)
    return data


def _rename_budget(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """``always_valid: {runs: R}`` of earlier versions as ``candidates: {max: R}``.

    Raises:
        ValueError: Both are given.
    """
    if not isinstance(data, Mapping) or "always_valid" not in data:
        return data
    renamed = dict(data)
    budget = renamed.pop("always_valid")
    if "candidates" in renamed:
        raise ValueError("always_valid is an earlier name of candidates: keep candidates alone")
    if isinstance(budget, Mapping) and [*budget] == ["runs"]:
        budget = {"max": budget["runs"]}
    return {**renamed, "candidates": budget}


class Guard(StrictModel):
    """A bound on single queries, since a mean can hide a few large losses.

    Attributes:
        measure: Its name.
        max_loss: A query that loses more than this violates the guard.
        max_share: The share of queries, 0 to 1, that may violate it.
    """

    old_keys: ClassVar[Mapping[str, str]] = {
        "lose": "this key is called 'max_loss' now",
        "at_most": "this key is called 'max_share' now",
    }

    measure: MeasureName
    max_loss: Annotated[float, Field(ge=0)]
    max_share: Annotated[float, Field(ge=0, le=1)] = 0.0


class Golden(StrictModel):
    """A query that must keep a document in its top ranks.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        top: The last allowed rank.
        dataset: Where the query is; needed with several datasets only.
    """

    query: str
    document: str
    top: Annotated[int, Field(ge=1)] = 10
    dataset: str | None = None


class GatePolicy(StrictModel):
    """The policy of a gate; ``{MEASURE: {max_drop: M}, …}`` is short for ``{checks: …}``.

    Attributes:
        system: The gated system; by default the only one, or the only one beside the
            experiment's baseline.
        checks: Tolerance by measure; each is checked on all queries, and on every slice.
        slices: Slices that every measure is checked on as well: query types, or values of
            another field as ``{intent: meta}``, which is stored as ``intent: meta``.
        small_changes: What ``pass on these queries`` does: ``pass``, or ``block`` with exit code 3.
        fell: What ``fell`` does: ``block`` with exit code 1, or ``warn``.
        inconclusive: What ``inconclusive`` does: ``block`` with exit code 3, or ``warn``.
        candidates: Shares the level among several candidates since the last update; None = every
            candidate is checked at the full level. ``always_valid: {runs: R}`` is the same.
        guards: Bounds on single queries.
        golden: Queries that must keep a document.
        lists: What a changed run or rerank list does: ``compare`` compares the candidate with the
            stored values of the baseline, ``refuse`` refuses.
        unreproduced: What stored values do that changed lists cannot compute again: ``block`` with
            exit code 3, unless the baseline is that of a commit which is trusted, or ``accept``.
        worst: Number of regressed queries shown for each collection.
        degraded: Whether to accept a rerank list that a fallback scored in part.
    """

    system: str | None = None
    checks: Annotated[
        dict[MeasureName, Tolerance],
        Field(min_length=1),
        BeforeValidator(_refuse_repeats),
    ]
    slices: Slices = ()
    small_changes: Literal["pass", "block"] = "pass"
    fell: BlockOrWarn = "block"
    inconclusive: Annotated[BlockOrWarn, BeforeValidator(_refuse_old_values)] = "block"
    candidates: CandidateBudget | None = None
    guards: tuple[Guard, ...] = ()
    golden: tuple[Golden, ...] = ()
    lists: Literal["compare", "refuse"] = "compare"
    unreproduced: Literal["block", "accept"] = "block"
    worst: Annotated[int, Field(ge=0)] = 5
    degraded: Literal["refuse", "accept"] = "refuse"

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        data = _rename_budget(data)
        if isinstance(data, Mapping) and data and not any(key in cls.model_fields for key in data):
            return {"checks": data}
        return data

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of all measures, those of the checks first."""
        return tuple(dict.fromkeys([*self.checks, *(guard.measure for guard in self.guards)]))

    @property
    def runs(self) -> int:
        """R: candidates that share the level; 1 = none but this one."""
        return 1 if self.candidates is None else self.candidates.max

    def slices_of(self, measure: str) -> tuple[str | None, ...]:
        """The slices of a measure: None = all queries, then query types and other slices."""
        slices = self.checks[measure].slices
        return (None, *(self.slices if slices is None else slices))
