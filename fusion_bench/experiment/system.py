"""A system: a fusion and a blend over named runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fusion_bench.blend import Blend
from fusion_bench.blend.none import NoBlend
from fusion_bench.config.limits import Rank
from fusion_bench.config.models import Location, StrictModel, UniqueNames, make_config_error
from fusion_bench.config.query_classes import (
    BY_INTENT,
    BY_TYPE,
    CLASS_KEYS,
    ClassKey,
    split_by_class,
)
from fusion_bench.config.query_types import TypeWeights
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.dialect import dialects, parse_dialect
from fusion_bench.experiment.methods.system_methods import (
    AnyBlend,
    AnyFusion,
    AnyPolicy,
    Depth,
    PerTypeConfig,
    Types,
    refuse_together,
)
from fusion_bench.experiment.misfits import find_misfits
from fusion_bench.experiment.stages import base_runs, check_stages, name_stages
from fusion_bench.fuse import Fusion, fusions
from fusion_bench.fuse.rrf import RRF
from fusion_bench.io.specs.families import Family
from fusion_bench.policies import Variant

#: Keys that are left out of what is written while they are None.
OMITTED = frozenset({"by_intent", "dialect", "family", "policy", "stages", "types"})


class System(StrictModel):
    """A system to compare: its runs, how they are fused, how a reranker is blended in.

    Attributes:
        name: Its name in tables.
        runs: Names of the sources, in the order that ``first_seen`` ties go by.
        stages: Systems whose lists are sources: ``runs`` names them beside the dataset's runs.
        dialect: The engine whose methods and defaults ``fusion`` names; None = our own.
        fusion: How they become one list; ``rrf`` where a single run needs none.
        blend: How a rerank list changes that list.
        depth: Cut each source (or the named ones) at this rank before fusion; all by default.
        weights_by_type: Weights by query type, instead of the fusion's own.
        by_query_type: Fusion and blend by query type. In place of any number in them, YAML may
            have ``{by_query_type: {local: 0.3, hybrid: 0.5}}``, which becomes this.
        by_intent: The same by intent; queries of another intent, or of none, use ``default``.
        types: Which types count: ``given`` (None too), ``predicted``, or ``hybrid`` for all.
        policy: Picks weights, fusion or "do not rerank" for each query; None = the same for all.
        min_relevance: Drop documents whose final score is below this.
        top_k: Cut the final list at this rank, last of all.
        family: Family of a model that works in it beside its lists, such as ``gpt``.
    """

    name: str
    runs: Annotated[UniqueNames, Field(min_length=1)]
    stages: Annotated[dict[str, System], BeforeValidator(name_stages)] | None = None
    dialect: str | None = None
    fusion: AnyFusion = RRF()
    blend: AnyBlend = NoBlend()
    depth: Depth | dict[str, Depth] | None = None
    weights_by_type: TypeWeights | None = None
    by_query_type: dict[str, PerTypeConfig] | None = None
    by_intent: dict[str, PerTypeConfig] | None = None
    types: Types | None = None
    policy: AnyPolicy | None = None
    min_relevance: float | None = None
    top_k: Rank | None = None
    family: Family | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            runs: Sequence[str],  # a single name too
            fusion: Fusion | str | Mapping[str, Any] = ...,
            blend: Blend | str | Mapping[str, Any] = ...,
            **settings: Any,  # noqa: ANN401 - as the fields above
        ) -> None: ...

    else:

        def __init__(self, *values: object, **settings: object) -> None:
            """Build it; name, runs, fusion and blend may be given by position."""
            fields = ("name", "runs", "fusion", "blend")
            if len(values) > len(fields):
                raise TypeError(f"only {', '.join(fields)} may be given by position")
            settings |= dict(zip(fields, values, strict=False))
            if isinstance(settings.get("runs"), str):
                settings["runs"] = (settings["runs"],)
            try:
                super().__init__(**settings)
            except ValidationError as error:
                name = str(settings.get("name") or "system")
                raise make_config_error(
                    error, settings, lambda location: ".".join((name, *map(str, location)))
                ) from None

        # As of the base class: validation builds systems without calling it.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _split_by_class(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        data = split_by_class(data, ("fusion", "blend"))
        if not isinstance(data, Mapping) or data.get("dialect") is None:
            return data
        try:
            return parse_dialect(data["dialect"]).fill_defaults(data)
        except ConfigError as error:
            context = {"key": "dialect", "text": str(error)}
            raise PydanticCustomError("unknown_key", "{text}", context) from None

    @model_serializer(mode="wrap")
    def _omit_unused(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = serialize(self)
        return {
            key: value for key, value in data.items() if key not in OMITTED or value is not None
        }

    @field_validator(*CLASS_KEYS)
    @classmethod
    def _check_fallback(
        cls, value: dict[str, PerTypeConfig] | None, info: ValidationInfo
    ) -> dict[str, PerTypeConfig] | None:
        if value is not None:
            CLASS_KEYS[str(info.field_name)].require_fallback(value)
        return value

    @model_validator(mode="after")
    def _check_types(self) -> System:
        check_stages(self)
        by_class = ("weights_by_type", *CLASS_KEYS)
        refuse_together(self, by_class, ("types", "by_intent"), ("types", "policy"))
        if self.weights_by_type is not None and getattr(self.fusion, "alpha", None) is not None:
            raise ValueError("weights_by_type and fusion.alpha exclude each other: keep one")
        return self

    @model_validator(mode="after")
    def _check_policy(self) -> System:
        if self.policy is None:
            return self
        if self.query_classes is not None:
            raise ValueError(f"policy and {self.class_field} exclude each other: keep one")
        if self.policy.needs_reranker and self.blend.reranker_name is None:
            raise ValueError(
                f"policy {self.policy.method!r} needs a blend with a reranker, given "
                f"{self.blend.method!r}"
            )
        variants = self.policy.fixed_variants()
        if self.blend.reranker_name is None and not all(each.rerank for each in variants):
            raise ValueError(
                f"policy {self.policy.method!r}: rerank: false needs a blend with a reranker, "
                f"given {self.blend.method!r}: remove it, or add a blend"
            )
        return self

    def __repr__(self) -> str:
        """What builds it: its name, its runs, and what differs from the defaults."""
        keys = self.model_dump(exclude={"name", "runs"}, exclude_defaults=True)
        if len(self.runs) > 1:
            keys = {"fusion": {}, **keys}
        for key in [key for key in ("fusion", "blend", "policy") if key in keys]:
            method = getattr(self, key).method
            keys[key] = {"method": method, **keys[key]} if keys[key] else method
        if self.class_configs is not None and self.class_key is not None:
            keys[self.class_key.key] = {
                name: config.model_dump() for name, config in self.class_configs.items()
            }
        given = (f"{key}={value!r}" for key, value in keys.items())
        return f"System({', '.join((repr(self.name), repr(list(self.runs)), *given))})"

    __str__ = __repr__

    @property
    def fusions(self) -> MethodRegistry[Fusion]:
        """The fusion methods that it may use, by name."""
        return fusions if self.dialect is None else dialects.find_plugin(self.dialect).fusions()

    @property
    def class_key(self) -> ClassKey | None:
        """What decides which configuration a query gets; None = one for all."""
        if self.by_intent is not None:
            return BY_INTENT
        return None if self.by_query_type is None and self.weights_by_type is None else BY_TYPE

    @property
    def class_field(self) -> str:
        """The field of this model that has numbers by class; empty = none."""
        stated = (*CLASS_KEYS, "weights_by_type")
        return next((name for name in stated if getattr(self, name) is not None), "")

    @property
    def class_configs(self) -> dict[str, PerTypeConfig] | None:
        """Fusion and blend by query type or intent; None = there are none."""
        return self.by_query_type if self.by_intent is None else self.by_intent

    @property
    def query_classes(self) -> tuple[str, ...] | None:
        """The query types or intents with a configuration of their own; None = one for all."""
        if self.class_configs is not None:
            return tuple(self.class_configs)
        return None if self.weights_by_type is None else tuple(self.weights_by_type.root)

    @property
    def resolved_config(self) -> dict[str, Any]:
        """The system with every default spelled out, as it goes into a report."""
        return self.model_dump(mode="json", exclude={"name"})

    @property
    def reranker_names(self) -> frozenset[str]:
        """The rerank lists that some query needs."""
        by_class = (self.class_configs or {}).values()
        names = {self.blend.reranker_name, *(config.blend.reranker_name for config in by_class)}
        stages = (stage.reranker_names for stage in (self.stages or {}).values())
        return frozenset(name for name in names if name is not None).union(*stages)

    @property
    def base_runs(self) -> tuple[str, ...]:
        """The dataset's runs that it reads, its stages included."""
        return base_runs(self)

    @property
    def list_keys(self) -> frozenset[str]:
        """Every list that it reads, as ``runs/NAME`` and ``rerank/NAME``."""
        rerankers = (f"rerank/{name}" for name in self.reranker_names)
        return frozenset(f"runs/{name}" for name in self.base_runs).union(rerankers)

    def find_misfits(
        self, roles: Mapping[str, frozenset[str]], rerankers: Sequence[str]
    ) -> Iterator[tuple[Location, Exception]]:
        """What does not fit a dataset; see :mod:`~fusion_bench.experiment.misfits`."""
        return find_misfits(self, roles, rerankers)

    def of_class(self, name: str) -> System:
        """The plain system for queries of this type or intent."""
        if self.class_configs is not None:
            config = self.class_configs[name]
            changed = {"fusion": config.fusion, "blend": config.blend, self.class_field: None}
            return self.model_copy(update=changed)
        if self.weights_by_type is None:
            return self
        if "weights" not in type(self.fusion).model_fields:
            raise ConfigError(
                f"system {self.name!r}: weights_by_type needs a fusion with weights, "
                f"and {self.fusion.method!r} has none"
            )
        weights = self.weights_by_type.root[name]
        fusion = self.fusion.model_copy(update={"weights": weights})
        return self.model_copy(update={"fusion": fusion, "weights_by_type": None})

    def with_variant(self, variant: Variant) -> System:
        """The plain system for queries for which the policy picks this variant.

        Raises:
            ConfigError: Weights for a fusion that has none.
        """
        fusion = self.fusion if variant.fusion is None else fusions.build(variant.fusion)
        if variant.weights is not None:
            if "weights" not in type(fusion).model_fields:
                raise ConfigError(
                    f"policy {self.policy.method if self.policy else ''!r} sets weights, and "
                    f"fusion {fusion.method!r} has none: choose a weighted fusion"
                )
            alpha = {"alpha": None} if "alpha" in type(fusion).model_fields else {}
            fusion = fusion.model_copy(update={"weights": variant.weights, **alpha})
        blend = self.blend if variant.rerank else NoBlend()
        return self.model_copy(update={"fusion": fusion, "blend": blend, "policy": None})

    def active_runs(self, runs: AlignedRuns) -> AlignedRuns:
        """The sources that take part, each cut at its depth."""
        roles = [runs.roles[i] for i in runs.rows(self.runs)]
        self.fusion.check_sources(self.runs, roles)
        weights = self.fusion.source_weights(self.runs, roles)
        active = [name for name, weight in zip(self.runs, weights, strict=True) if weight > 0]
        depth = self.depth if isinstance(self.depth, dict) else dict.fromkeys(active, self.depth)
        return runs.restrict(active, depth)
