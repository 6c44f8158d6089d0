"""A system: a fusion with a blend over named runs, in stages, checked against a dataset.

A stage is a system of its own under a name; ``runs`` of the system around it may hold that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fusion_bench.config import query_types
from fusion_bench.config.models import (
    Location,
    Rank,
    StrictModel,
    UniqueNames,
    make_config_error,
)
from fusion_bench.config.registry import MethodRegistry
from fusion_bench.config.removed_names import describe_gone
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.records import FINAL_ROLE
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.experiment.abstain import (
    AGREEMENT,
    FUSED_MARGIN,
    FUSED_TOP,
    LIST_TOP,
    RERANK_TOP,
    Abstain,
)
from fusion_bench.experiment.collapse import Collapse
from fusion_bench.io.dataset_config import ChunkRules, Family
from fusion_bench.methods.blend import Blend, blends
from fusion_bench.methods.blend.formulas import NoBlend
from fusion_bench.methods.fuse import Fusion, Trainable, fusions
from fusion_bench.methods.fuse.rrf import RRF


def _build_fusion(data: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The fusion that YAML describes, in the terms of the system's dialect."""
    name = info.data.get("dialect")
    if name is None:
        return fusions.validate_field(data)
    from fusion_bench.experiment.dialect import dialects  # late: few systems have one

    return dialects.find_plugin(name).build_fusion(data)


AnyFusion = Annotated[SerializeAsAny[Fusion], BeforeValidator(_build_fusion)]
AnyBlend = Annotated[SerializeAsAny[Blend], BeforeValidator(blends.validate_field)]
#: The rank that a source is cut at.
Depth = Rank


def _read_type_source(value: object) -> object:
    """``given`` for ``true``, as in "true types"; anything else as it is."""
    return "given" if value is True or value == "true" else value


#: Which types count; None = the given ones.
Types = Annotated[query_types.TypeSource, BeforeValidator(_read_type_source)]


class PerTypeConfig(StrictModel):
    """Fusion and blend for the queries of one type or intent."""

    fusion: AnyFusion = RRF()
    blend: AnyBlend = NoBlend()


def name_stages(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """Stages as YAML says them, each with the name that its key states."""
    if not isinstance(data, Mapping):
        return data
    return {
        name: {**stage, "name": str(name)} if isinstance(stage, Mapping) else stage
        for name, stage in data.items()
    }


def source_roles(system: System, roles: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Roles of the system's sources: a stage has those that all of its own sources share.

    Args:
        system: Any system.
        roles: Of the dataset's runs, by name.
    """
    stages = system.stages or {}
    by_source = {}
    for run in system.runs:
        if run in stages:
            inner = source_roles(stages[run], roles).values()
            by_source[run] = reduce(frozenset.intersection, inner)
        else:
            by_source[run] = roles[run]
    return by_source


def resolve_named_stages(systems: Mapping[str, Any]) -> dict[str, Any]:
    """Systems as YAML says them, with copies of those that stages name, and each with its name.

    Raises:
        ValueError: A stage names no system, or a system is a stage of itself.
    """
    copies = {name: _resolve_stages(name, spec, systems, ()) for name, spec in systems.items()}
    named: dict[str, Any] = name_stages(copies)
    return named


def _resolve_stages(
    name: object,
    spec: Any,  # noqa: ANN401
    systems: Mapping[str, Any],
    outer: tuple[object, ...],
) -> Any:  # noqa: ANN401 - as YAML says it
    if not (isinstance(spec, Mapping) and isinstance(spec.get("stages"), Mapping)):
        return spec
    path = (*outer, name)
    stages = {}
    for stage, inner in spec["stages"].items():
        if not isinstance(inner, str):
            stages[stage] = _resolve_stages(stage, inner, systems, path)
            continue
        if inner not in systems:
            known = ", ".join(map(str, systems))
            raise ValueError(f"{name}: stage {stage!r}: unknown system {inner!r} (known: {known})")
        if inner in path:
            raise ValueError(f"{name}: stage {stage!r}: {inner!r} would be a stage of itself")
        named = _resolve_stages(inner, systems[inner], systems, path)
        is_mapping = isinstance(named, Mapping)
        own = ("name", "abstain")  # keys of a system that a stage has not
        stages[stage] = (
            {key: named[key] for key in named if key not in own} if is_mapping else named
        )
    return {**spec, "stages": stages}


def collapse_alike(system: System, others: Iterable[System]) -> System:
    """Collapse each list of a system as the first other system that reads one of them does."""
    for other in others:
        if other.collapse is not None and not set(system.runs).isdisjoint(other.base_runs):
            changed = {"place": "each list"}
            if not set(system.runs) <= set(other.base_runs):
                changed["orphans"] = "own"  # a list that it does not read may hold documents
            collapse = other.collapse.model_copy(update=changed)
            return system.model_copy(update={"collapse": collapse})
    return system


def merge_rules(systems: Iterable[System]) -> ChunkRules:
    """Return which rows of lists some system merges as they are read, and which parents it needs.

    Raises:
        ConfigError: Two systems merge the rows of one list differently.
    """
    rules = ChunkRules({}, {})
    for system in systems:
        for _, part in system.list_parts():
            if part.collapse is not None and any(part.collapse.names):
                rules.parents[part.collapse.rule] = part.collapse.names
        collapse = system.collapse
        for name in system.base_runs if collapse is not None and collapse.by == "id" else ():
            if collapse is None or collapse.score is None:
                raise TypeError("by: id has a score")
            rule = collapse.score, collapse.k
            if rules.rows.setdefault(name, rule) != rule:
                raise ConfigError(
                    f"system {system.name!r}: collapse: by: id merges the rows of list {name!r} by "
                    f"score: {collapse.score}, and another system by score: {rules.rows[name][0]}: "
                    "use one score in all systems of the experiment"
                )
    return rules


Misfits: TypeAlias = Iterator[tuple[Location, Exception]]


def _find_stage_misfits(
    system: System, roles: Mapping[str, frozenset[str]], rerankers: Sequence[str]
) -> Misfits:
    """Stages with the name of a run, and what does not fit in each stage."""
    for name, stage in (system.stages or {}).items():
        if name in roles:
            problem = f"stage {name!r} has the name of a run of the dataset: rename it"
            yield ("stages", name), ConfigError(problem)
        for location, error in stage.find_misfits(roles, rerankers):
            yield ("stages", name, *location), error


#: Keys that are left out of what is written while they are None.
OMITTED = frozenset({"abstain", "by_intent", "collapse", "dialect", "family", "stages", "types"})


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
        collapse: How the chunks of a document are collapsed; None = results are as listed.
        min_relevance: Drop documents whose final score is below this.
        top_k: Cut the final list at this rank, last of all.
        family: Family of a model that works in it beside its lists, such as ``gpt``.
        abstain: When it says that it has no answer, the list as it is; None = it answers always.
    """

    old_keys: ClassVar[Mapping[str, str]] = {"policy": describe_gone("policy:")}
    name: str
    runs: Annotated[UniqueNames, Field(min_length=1)]
    stages: Annotated[dict[str, System], BeforeValidator(name_stages)] | None = None
    dialect: str | None = None
    fusion: AnyFusion = RRF()
    blend: AnyBlend = NoBlend()
    depth: Depth | dict[str, Depth] | None = None
    weights_by_type: query_types.TypeWeights | None = None
    by_query_type: dict[str, PerTypeConfig] | None = None
    by_intent: dict[str, PerTypeConfig] | None = None
    types: Types | None = None
    collapse: Collapse | None = None
    min_relevance: float | None = None
    top_k: Rank | None = None
    family: Family | None = None
    abstain: Abstain | None = None

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
                raise make_config_error(error, settings, name) from None

        # As of the base class: validation builds systems without calling it.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _split_by_class(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        data = query_types.split_by_class(data, ("fusion", "blend"))
        if not isinstance(data, Mapping) or data.get("dialect") is None:
            return data
        from fusion_bench.experiment.dialect import parse_dialect  # late, as above

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

    @field_validator(*query_types.CLASS_KEYS)
    @classmethod
    def _check_fallback(
        cls, value: dict[str, PerTypeConfig] | None, info: ValidationInfo
    ) -> dict[str, PerTypeConfig] | None:
        if value is not None:
            query_types.CLASS_KEYS[str(info.field_name)].require_fallback(value)
        return value

    @model_validator(mode="after")
    def _check_types(self) -> System:
        for name in self.stages or ():
            if name not in self.runs:
                raise ValueError(
                    f"stage {name!r} is no source of the system: name it in runs, or remove it"
                )
            if self.stages and self.stages[name].abstain is not None:
                raise ValueError(f"stage {name!r}: remove 'abstain': it belongs to the system")
        by_class = ("weights_by_type", *query_types.CLASS_KEYS)
        for group in (by_class, ("types", "by_intent")):
            stated = [name for name in group if getattr(self, name) is not None]
            if len(stated) > 1:
                raise ValueError(f"{' and '.join(stated)} exclude each other: keep one")
        if self.weights_by_type is not None and getattr(self.fusion, "alpha", None) is not None:
            raise ValueError("weights_by_type and fusion.alpha exclude each other: keep one")
        for name in () if self.abstain is None else self.abstain.names:
            if name not in self.signals:
                known = ", ".join(self.signals)
                raise ValueError(
                    f"abstain.signal: the system has no signal {name!r} (known: {known})"
                )
        return self

    @model_validator(mode="after")
    def _check_collapse(self) -> System:
        for name, stage in (self.stages or {}).items():
            if stage.collapse is not None and stage.collapse.score is not None:
                raise ValueError(
                    f"stage {name!r} returns documents, and the lists hold chunks: write keep in "
                    "place of score, or collapse the system around the stage"
                )
        if self.collapse is None or self.collapse.place == "each list":
            return self
        parts: list[System | PerTypeConfig] = [self, *(self.class_configs or {}).values()]
        if any(isinstance(part.fusion, Trainable) for part in parts) and not self.collapse.keep:
            raise ValueError(
                "a trained fusion learns from judged documents, and it would see chunks: write "
                "place: each list in collapse"
            )
        readings = {getattr(part.blend, "retrieval", None) for part in parts}
        if self.collapse.place == "fused" and "fused_max_possible" in readings:
            raise ValueError(
                "retrieval: fused_max_possible has no value after a collapse: write retrieval: "
                "fused_min_max, or place: each list in collapse"
            )
        return self

    def __repr__(self) -> str:
        """What builds it: its name, its runs, and what differs from the defaults."""
        keys = self.model_dump(exclude={"name", "runs"}, exclude_defaults=True)
        if len(self.runs) > 1:
            keys = {"fusion": {}, **keys}
        for key in [key for key in ("fusion", "blend") if key in keys]:
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
        if self.dialect is None:
            return fusions
        from fusion_bench.experiment.dialect import dialects  # late, as above

        return dialects.find_plugin(self.dialect).fusions()

    @property
    def class_key(self) -> query_types.ClassKey | None:
        """What decides which configuration a query gets; None = one for all."""
        if self.by_intent is not None:
            return query_types.BY_INTENT
        return (
            None
            if self.by_query_type is None and self.weights_by_type is None
            else query_types.BY_TYPE
        )

    @property
    def class_field(self) -> str:
        """The field of this model that has numbers by class; empty = none."""
        stated = (*query_types.CLASS_KEYS, "weights_by_type")
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
        return None if self.weights_by_type is None else tuple(self.weights_by_type)

    @property
    def resolved_config(self) -> dict[str, Any]:
        """The system with every default spelled out, as it goes into a report."""
        return self.model_dump(mode="json", exclude={"name"})

    def list_parts(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], System]]:
        """The system and its stages, however deep, each with its path.

        Args:
            path: That of what holds the system.
        """
        here = (*path, self.name)
        yield here, self
        for stage in (self.stages or {}).values():
            yield from stage.list_parts((*here, "stages"))

    @property
    def reranker_names(self) -> frozenset[str]:
        """The rerank lists that some query needs."""
        blends = [part.blend for _, part in self.list_parts()]
        for _, part in self.list_parts():
            blends += [config.blend for config in (part.class_configs or {}).values()]
        names = (blend.reranker_name for blend in blends)
        return frozenset(name for name in names if name is not None)

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the numbers per query that ``abstain`` may have a threshold on."""
        blends = [self.blend, *(part.blend for part in (self.class_configs or {}).values())]
        is_reranked = any(blend.reranker_name is not None for blend in blends)
        return (
            *(f"{LIST_TOP}{name}" for name in self.base_runs),
            *(FUSED_TOP, FUSED_MARGIN),
            *([AGREEMENT] if len(self.base_runs) > 1 else []),
            *([RERANK_TOP] if is_reranked else []),
        )

    @property
    def base_runs(self) -> tuple[str, ...]:
        """The dataset's runs that it and its stages read, each once."""
        stages = self.stages or {}
        names = (stages[run].base_runs if run in stages else (run,) for run in self.runs)
        return tuple(dict.fromkeys(name for some in names for name in some))

    @property
    def list_keys(self) -> frozenset[str]:
        """Every list that it reads, as ``runs/NAME`` and ``rerank/NAME``."""
        rerankers = (f"rerank/{name}" for name in self.reranker_names)
        return frozenset(f"runs/{name}" for name in self.base_runs).union(rerankers)

    def find_misfits(
        self, roles: Mapping[str, frozenset[str]], rerankers: Sequence[str]
    ) -> Misfits:
        """What does not fit a dataset, each with the path of the offending value.

        Args:
            roles: Roles by name of every run of the dataset.
            rerankers: Names of its rerank lists.
        """
        known = {*roles, *(self.stages or {})}
        for i, name in enumerate(self.runs):
            if name not in known:
                yield ("runs", i), UnknownNameError("run", name, known)
            elif len(self.runs) > 1 and FINAL_ROLE in roles.get(name, ()):
                problem = f"{name!r} is an engine's final list (role {FINAL_ROLE}), and no source"
                remedy = "leave it out, or make it a system alone"
                yield ("runs", i), ConfigError(f"{problem}: {remedy}")
        yield from _find_stage_misfits(self, roles, rerankers)
        for name in self.depth if isinstance(self.depth, dict) else ():
            if name not in self.runs:
                yield ("depth", name), UnknownNameError("run", name, self.runs)
        for reranker in sorted(self.reranker_names.difference(rerankers)):
            yield ("blend", "reranker"), UnknownNameError("reranker", reranker, rerankers)
        if roles.keys() >= {*self.base_runs}:
            by_source = [*source_roles(self, roles).values()]
            for name in self.query_classes or ("",):
                location = (self.class_field, name) if name else ("fusion",)
                try:
                    self.of_class(name).fusion.check_sources(self.runs, by_source)
                except ConfigError as error:
                    yield location, error

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
        weights = self.weights_by_type[name]
        fusion = self.fusion.model_copy(update={"weights": weights})
        return self.model_copy(update={"fusion": fusion, "weights_by_type": None})

    def active_runs(self, runs: AlignedRuns) -> AlignedRuns:
        """The sources that take part, each cut at its depth."""
        roles = [runs.roles[i] for i in runs.rows(self.runs)]
        self.fusion.check_sources(self.runs, roles)
        weights = self.fusion.source_weights(self.runs, roles)
        active = [name for name, weight in zip(self.runs, weights, strict=True) if weight > 0]
        depth = self.depth if isinstance(self.depth, dict) else dict.fromkeys(active, self.depth)
        return runs.restrict(active, depth, self.fusion.ties)
