"""The settings of ``tune:``: the system, the space, the search, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from fusion_bench.config.limits import MOST_FOLDS, MOST_RANK, MOST_TRIALS
from fusion_bench.config.models import StrictModel
from fusion_bench.config.parameters import Kind, Parameter, Value
from fusion_bench.config.query_classes import BY_INTENT, BY_TYPE, ClassKey
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.crag_settings import CragFitSettings
from fusion_bench.experiment.look_settings import LookSettings
from fusion_bench.measures.aliases import MeasureName

SamplerName: TypeAlias = Literal["tpe", "cmaes", "gp", "qmc", "random", "grid", "brute_force"]
SelectionRule: TypeAlias = Literal["shrinkage", "best", "one_standard_error"]
#: Samplers whose trials are the same whatever the values, as cross-fitting needs them.
DATA_FREE_SAMPLERS = frozenset({"random", "qmc", "grid", "brute_force"})
#: In YAML, the ranges that the methods declare.
DECLARED = "own"


class ParameterRange(StrictModel):
    """The values of one parameter: a range, or choices.

    Attributes:
        low: Least value.
        high: Greatest value, itself allowed.
        step: Only low, low + step, …
        log: Search evenly by the logarithm.
        int: Whole numbers only.
        choices: The values, instead of a range.
        when: Other paths, each with the value or values under which this one takes part.
    """

    low: float | None = None
    high: float | None = None
    step: float | None = None
    log: bool = False
    int: bool = False
    choices: tuple[Value, ...] = ()
    when: dict[str, Value | tuple[Value, ...]] = Field(default_factory=dict)

    def to_parameter(self, path: str) -> Parameter:
        """As the search takes it.

        Raises:
            ConfigError: Both a range and choices, or a broken range.
        """
        if self.choices and (self.low, self.high, self.step) != (None, None, None):
            raise ConfigError(f"{path}: give either choices, or low and high")
        when = tuple(
            (other, allowed if isinstance(allowed, tuple) else (allowed,))
            for other, allowed in self.when.items()
        )
        bounds = self.model_dump(exclude={"int", "when"})
        kind: Kind = "choice" if self.choices else "int" if self.int else "float"
        return Parameter(path, kind, when=when, **bounds)


class SearchSettings(StrictModel):
    """How a search runs.

    Attributes:
        trials: How many parameter sets are tried, the default and the presets included.
        timeout: Stop starting trials after this many seconds; None = never.
        sampler: Proposes them: ``tpe`` takes every space, ``cmaes`` numbers without
            conditions, ``gp`` (needs torch) and ``qmc`` spaces without conditions, ``random``
            every space; ``grid`` and ``brute_force`` go through all points.
        batch: Trials that are asked for and evaluated together.
        points: Values that ``grid`` takes from a range without steps.
        seed: Makes a run exactly repeatable.
    """

    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)] = 300
    timeout: Annotated[float, Field(gt=0)] | None = None
    sampler: SamplerName = "tpe"
    batch: Annotated[int, Field(ge=1, le=256)] = 16
    points: Annotated[int, Field(ge=2, le=MOST_TRIALS)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 7


class DeclaredCost(StrictModel):
    """The cost of reranking.

    Attributes:
        price: Of 1,000 reranked candidates, in any currency.
        seconds: Of one reranked candidate.
    """

    price: Annotated[float, Field(ge=0)] | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None


class EffortSettings(DeclaredCost):
    """The cost of reranking, for the front of quality against effort.

    The ledger of a rerank list overrides these values.

    Attributes:
        rerankers: The same for single rerank lists, over the values for all.
        prefer: ``declared`` = these values override a ledger.
    """

    rerankers: dict[str, DeclaredCost] = Field(default_factory=dict)
    prefer: Literal["ledger", "declared"] = "ledger"

    def declared_for(self, reranker: str) -> DeclaredCost:
        """What is declared for one rerank list."""
        single = self.rerankers.get(reranker, DeclaredCost())
        shared = {"price": self.price, "seconds": self.seconds}
        return DeclaredCost(**shared | single.model_dump(exclude_none=True))


class FrontSettings(StrictModel):
    """The search for the front of quality against rerank effort.

    Attributes:
        method: Good trials are taken to every depth; then ``tpe`` or ``nsga2`` (Optuna's
            multi-objective samplers) search on. ``depths`` stops before that, ``none`` searches no
            front.
        trials: Of the sampler.
        depths: Rerank depths, 0 = no reranker; None = those that the space allows, or a ladder
            from 1 to 100.
    """

    method: Literal["tpe", "nsga2", "depths", "none"] = "tpe"
    trials: Annotated[int, Field(ge=0, le=MOST_TRIALS)] = 150
    depths: (
        Annotated[tuple[Annotated[int, Field(ge=0, le=MOST_RANK)], ...], Field(min_length=1)] | None
    ) = None


class TuneSettings(SearchSettings):
    """The settings of an experiment's ``tune:``.

    Attributes:
        system: The system to tune; as it is written, it is the default to beat.
        measure: What is maximized; the experiment's first measure by default.
        parameters: Path → range, or ``own`` for what the methods declare at or below that path;
            None = everything that they declare.
        held_out: Share of the queries held out, where the dataset has no splits of its own; or
            ``all``: each query is held out once, by cross-fitting. ``auto`` = ``all`` with few
            queries where no other setting excludes it, else half.
        split_seed: Hashed with query ids; another one gives another split.
        folds: Of the nested cross-validation; 0 = none.
        min_gain: A smaller gain is not worth a change.
        choose: ``shrinkage`` = the trial with the greatest gain over the default on the tuning
            queries after shrinkage (prior weight 10); ``best`` = the greatest mean; or
            ``one_standard_error`` = the nearest to the default within one of the best.
        effort: The cost of reranking.
        front: The search of quality against rerank effort.
        crag: Fit CRAG's thresholds and ``min_score`` too; None = no.
        by_query_type: Tune each query type by itself too, and compare that with one set for all.
        by_intent: The same for each intent; only one of the two.
        degraded: Whether to tune on a rerank list that a fallback answered in part.
        looks: How looks at the held-out queries are counted.
    """

    old_keys: ClassVar[Mapping[str, str]] = {
        "polish": "line searches are gone: delete this key",
        "salt": "this key is called 'split_seed' now",
    }

    system: str
    measure: MeasureName | None = None
    parameters: dict[str, ParameterRange | Literal["own"]] | None = None
    held_out: Annotated[float, Field(gt=0, lt=1)] | Literal["all", "auto"] = "auto"
    split_seed: str = "fusion-bench"
    folds: Annotated[int, Field(ge=0, le=MOST_FOLDS)] = 5
    min_gain: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.005
    choose: SelectionRule = "shrinkage"
    effort: EffortSettings = EffortSettings()
    front: FrontSettings = FrontSettings()
    crag: CragFitSettings | None = None
    by_query_type: bool = False
    by_intent: bool = False
    degraded: Literal["refuse", "accept"] = "refuse"
    looks: LookSettings = LookSettings()

    @field_validator("choose", mode="before")
    @classmethod
    def _refuse_old_rule(cls, rule: object) -> object:
        if rule == "sceptical":
            raise ValueError("'sceptical' is called 'shrinkage' now")
        return rule

    @model_validator(mode="after")
    def _check_one_key(self) -> TuneSettings:
        if self.by_query_type and self.by_intent:
            raise ValueError("by_query_type and by_intent exclude each other: keep one")
        if self.looks.max_queries is not None and (self.class_key or self.crag):
            raise ValueError(
                "looks.max_queries plans looks at one frozen set of numbers: leave out "
                "by_query_type, by_intent and crag"
            )
        return self

    @model_validator(mode="after")
    def _check_cross_fitting(self) -> TuneSettings:
        if self.held_out == "all" and self.cross_fitting_obstacle is not None:
            setting, reason = self.cross_fitting_obstacle
            raise ValueError(
                f"held_out: all cannot be combined with {setting}, because {reason}: leave out one "
                "of the two"
            )
        return self

    @property
    def cross_fitting_obstacle(self) -> tuple[str, str] | None:
        """A setting that excludes cross-fitting, and the reason; None = there is none."""
        given, one_set = self.model_fields_set, "cross-fitting tests one set of parameters"
        has_front, no_front = self.front.method != "none", "cross-fitting searches no front"
        follows = "sampler" in given and self.sampler not in DATA_FREE_SAMPLERS
        samplers = ", ".join(sorted(DATA_FREE_SAMPLERS))
        obstacles = (
            ("by_query_type", self.by_query_type, one_set),
            ("by_intent", self.by_intent, one_set),
            ("crag", self.crag is not None, one_set),
            ("looks.max_queries", self.looks.max_queries is not None, one_set),
            ("front", "front" in given and has_front, no_front),
            ("effort", "effort" in given and has_front, no_front),
            ("folds: 0", self.folds == 0, "cross-fitting needs folds"),
            (
                "choose: one_standard_error",
                self.choose == "one_standard_error",
                "cross-fitting chooses by shrinkage or best",
            ),
            (
                f"sampler: {self.sampler}",
                follows,
                f"cross-fitting needs trials that do not follow the values ({samplers})",
            ),
        )
        return next(((name, reason) for name, is_set, reason in obstacles if is_set), None)

    @property
    def class_key(self) -> ClassKey | None:
        """By what parameters are tuned beside one set for all; None = by nothing."""
        if self.by_intent:
            return BY_INTENT
        return BY_TYPE if self.by_query_type else None

    def search_settings(self, *, is_data_free: bool = False) -> SearchSettings:
        """The part that one search needs.

        Args:
            is_data_free: Whether trials must not follow the values, as for cross-fitting.
        """
        settings = {name: getattr(self, name) for name in SearchSettings.model_fields}
        if is_data_free and self.sampler not in DATA_FREE_SAMPLERS:
            settings["sampler"] = "random"
        return SearchSettings(**settings)
