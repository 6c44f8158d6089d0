"""The settings of an experiment: tune, gate, crag, looks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from fusion_bench.config.models import (
    MOST_FOLDS,
    MOST_RANK,
    MOST_TRIALS,
    Location,
    Rank,
    StrictModel,
    UniqueNames,
)
from fusion_bench.config.parameters import Kind, Parameter, Value
from fusion_bench.config.query_types import BY_INTENT, BY_TYPE, ClassKey, check_field_name
from fusion_bench.config.removed_names import describe_gone
from fusion_bench.config.yaml_files import Source
from fusion_bench.errors import ConfigError
from fusion_bench.measures.aliases import MeasureName, resolve_alias

#: What is said of a list, by the names of CONV-03-05.
Verdict: TypeAlias = Literal["correct", "ambiguous", "incorrect"]


#: On the unit scale of the scores.
UnitNumber: TypeAlias = Annotated[float, Field(ge=0, le=1)]


class CragRule(StrictModel):
    """Thresholds on the best rerank score: is there a relevant document in the top of the list?

    Attributes:
        upper: At or above it the verdict is ``correct``.
        lower: At or below it the verdict is ``incorrect``, between them ``ambiguous``.
        top: Documents of the list that count.
        grade: From which a document is relevant.
    """

    upper: UnitNumber = 0.7
    lower: UnitNumber = 0.3
    top: Rank = 10
    grade: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _check_order(self) -> CragRule:
        if self.lower > self.upper:
            raise ValueError(f"lower {self.lower:g} is above upper {self.upper:g}: swap them")
        return self


class CragSettings(CragRule):
    """The settings of an experiment's ``crag:``.

    Attributes:
        refine: The verdicts after which the lists of the refined query are taken, where the
            dataset has some.
    """

    refine: tuple[Verdict, ...] = ("incorrect", "ambiguous")


class CragFitSettings(CragRule):
    """The settings of ``tune: crag:``; its thresholds are the default to beat.

    Attributes:
        credit: Utility of ``ambiguous``, where a right verdict has 1 and a wrong one 0.
    """

    credit: Annotated[float, Field(ge=0.5, lt=1)] = 0.75


class LookSettings(StrictModel):
    """How looks at held-out queries are counted.

    Attributes:
        count: False = looks are not counted, and the report says so.
        file: The ledger; a relative path starts at the experiment's file. None = ``looks.jsonl``
            beside the ``dataset.yaml``.
        max_queries: Plan of looks at frozen numbers, declared before the first look: held-out
            queries of the last one. None = no plan; each look has the level of its number.
    """

    count: bool = True
    file: Path | None = None
    max_queries: Annotated[int, Field(ge=1)] | None = None


SamplerName: TypeAlias = Literal[
    "auto", "tpe", "cmaes", "gp", "qmc", "random", "grid", "brute_force"
]
#: A value of ``sampler`` in earlier versions.
GONE_SAMPLER: Final = "parzen"


def _refuse_gone_sampler(value: object) -> object:
    """The value, unless it is a sampler of an earlier version."""
    if value == GONE_SAMPLER:
        raise ValueError(describe_gone(f"sampler: {GONE_SAMPLER}"))
    return value


SelectionRule: TypeAlias = Literal["shrinkage", "best", "one_standard_error"]
#: The share of the queries that is held out by default.
HALF = 0.5
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
        """The parameter that the search uses.

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
        sampler: Proposes them: ``tpe`` and ``random`` take every space, ``cmaes`` numbers without
            conditions, ``gp`` (needs torch) and ``qmc`` spaces without conditions; ``grid`` and
            ``brute_force`` go through all points. ``auto`` = ``tpe`` up to 100 trials, and in a
            space with conditions; ``qmc`` beyond.
        batch: Trials that are asked for and evaluated together.
        points: Values that ``grid`` takes from a range without steps.
        seed: Makes a run exactly repeatable.
    """

    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)] = 300
    timeout: Annotated[float, Field(gt=0)] | None = None
    sampler: Annotated[SamplerName, BeforeValidator(_refuse_gone_sampler)] = "auto"
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
        method: Good trials are taken to every depth; then ``nsga2`` or ``tpe`` (Optuna's
            multi-objective samplers) search on. ``depths`` stops before that, ``none`` searches no
            front.
        trials: Of the sampler.
        depths: Rerank depths, 0 = no reranker; None = those that the space allows, or a ladder
            from 1 to 100.
    """

    method: Literal["tpe", "nsga2", "depths", "none"] = "nsga2"
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
        held_out: Share of the queries held out, where the dataset has no splits of its own;
            ``auto`` = half.
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
        engine: Search only what this search engine can express, by its own methods; None = all.
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
    held_out: Annotated[float, Field(gt=0, lt=1)] = HALF
    split_seed: str = "fusion-bench"
    folds: Annotated[int, Field(ge=0, le=MOST_FOLDS)] = 5
    min_gain: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.005
    choose: SelectionRule = "shrinkage"
    effort: EffortSettings = EffortSettings()
    front: FrontSettings = FrontSettings()
    crag: CragFitSettings | None = None
    by_query_type: bool = False
    by_intent: bool = False
    engine: str | None = None
    degraded: Literal["refuse", "accept"] = "refuse"
    looks: LookSettings = LookSettings()

    @field_validator("choose", mode="before")
    @classmethod
    def _refuse_old_rule(cls, rule: object) -> object:
        if rule == "sceptical":
            raise ValueError("'sceptical' is called 'shrinkage' now")
        return rule

    @field_validator("held_out", mode="before")
    @classmethod
    def _read_share(cls, share: object) -> object:
        if share == "all":
            raise ValueError("cross-fitting is gone, as it shipped too often: write 0.5")
        return HALF if share == "auto" else share

    @model_validator(mode="after")
    def _check_one_key(self) -> TuneSettings:
        if self.by_query_type and self.by_intent:
            raise ValueError("by_query_type and by_intent exclude each other: keep one")
        return self

    @property
    def class_key(self) -> ClassKey | None:
        """By what parameters are tuned beside one set for all; None = by nothing."""
        if self.by_intent:
            return BY_INTENT
        return BY_TYPE if self.by_query_type else None

    def search_settings(self) -> SearchSettings:
        """The part that one search needs."""
        return SearchSettings(**{name: getattr(self, name) for name in SearchSettings.model_fields})


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
    if not isinstance(data, list | tuple):
        return data
    named = []
    for item in data:
        if not isinstance(item, Mapping):
            named.append(item)
            continue
        if len(item) != 1:
            raise ValueError(
                f"a slice is one field and its value, such as intent: meta, given {item}"
            )
        [(field, value)] = item.items()
        if isinstance(value, list | tuple | Mapping) or value is None:
            raise ValueError(f"{field}: one value is needed, such as {field}: meta, given {value}")
        text = value if isinstance(value, str) else json.dumps(value)
        is_type = field == "type"
        named.append(text if is_type else f"{check_field_name(str(field))}{SEPARATOR}{text}")
    return named


def split_slice(name: str) -> tuple[str, str]:
    """The field of a slice, and the value that its queries have there."""
    field, separator, value = name.partition(SEPARATOR)
    return (field, value) if separator else ("type", name)


#: Between the field and the value in the name of a slice.
SEPARATOR: Final = ": "
#: Names of different slices.
Slices: TypeAlias = Annotated[UniqueNames, BeforeValidator(_name_slices)]


#: A tolerance that an update of the baseline computes from the queries.
AUTO: Final = "auto"


def _refuse_other_text(value: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """The value.

    Raises:
        ValueError: A text other than ``auto``.
    """
    if isinstance(value, str) and value != AUTO:
        raise ValueError(f"a number, at least 0, or {AUTO} is needed, given {value!r}")
    return value


class Tolerance(StrictModel):
    """How much one measure may fall.

    Attributes:
        max_drop: m, in the unit of the measure: a mean that falls by no more is no regression.
            ``auto`` = the smallest drop that the queries can decide, which an update of the
            baseline computes for each check.
        max_drop_since_anchor: The same for all changes since the anchor together; by default 2m.
        slices: Slices that are checked on their own, instead of the policy's; as there.
    """

    max_drop: Annotated[
        Annotated[float, Field(ge=0)] | Literal["auto"], BeforeValidator(_refuse_other_text)
    ] = AUTO
    max_drop_since_anchor: Annotated[float, Field(ge=0)] | None = None
    slices: Slices | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Tolerance:
        limit = self.max_drop_since_anchor
        if limit is not None and self.max_drop != AUTO and limit < self.max_drop:
            raise ValueError(
                f"max_drop_since_anchor: at least max_drop, {self.max_drop:g}, is needed, given "
                f"{limit:g}"
            )
        return self

    @property
    def stated_limits(self) -> dict[str, float]:
        """Name → value of each limit that the experiment states as a number."""
        limits = {
            "max_drop": None if self.max_drop == AUTO else self.max_drop,
            "max_drop_since_anchor": self.max_drop_since_anchor,
        }
        return {name: limit for name, limit in limits.items() if limit is not None}


class ShareLimit(StrictModel):
    """How many unanswerable queries a system may answer.

    Attributes:
        max: The share of these queries.
    """

    max: Annotated[float, Field(gt=0, lt=1)]


#: The check of the answerable queries that a system answers.
ANSWERED: Final = "answered"
#: Checks of what a system answers, as ``checks`` names them → the field of the policy.
ANSWER_CHECKS: Final = {ANSWERED: "answered", "false answers": "false_answers"}


class CandidateBudget(StrictModel):
    """The level is shared by several candidates.

    Attributes:
        max: Different candidates that may be checked between two updates of the baseline. Each
            needs more draws; for more than 100 they do not fit into memory.
    """

    max: Annotated[int, Field(ge=1, le=100)]


def _refuse_repeats(data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
    """Return the data, and refuse keys that name one measure twice.

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


#: Keys of earlier versions, which have no effect → what became of them.
ENDED_KEYS: Final = {
    "fell": "gate.fell has no effect: a drop that is shown is called regressed, and it blocks",
    "small_changes": "gate.small_changes has no effect: pass on these queries is called pass, and "
    "each check prints which losses may be unseen",
}


class GatePolicy(StrictModel):
    """The policy of a gate; ``{MEASURE: {max_drop: M}, …}`` is short for ``{checks: …}``.

    Attributes:
        system: The gated system; by default the only one, or the only one beside the
            experiment's baseline.
        checks: Tolerance by measure; each is checked on all queries, and on every slice.
        answered: Tolerance of the share of answerable queries that are answered; ``checks`` names
            it.
        false_answers: Limit of the share of unanswerable queries that are answered; ``checks``
            names it ``false answers``.
        slices: Slices that every measure is checked on as well: query types, or values of
            another field as ``{intent: meta}``, which is stored as ``intent: meta``.
        small_changes: Of earlier versions; without effect, see :attr:`ended_keys`.
        fell: Likewise.
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
    checks: Annotated[dict[MeasureName, Tolerance], BeforeValidator(_refuse_repeats)]
    answered: Tolerance | None = None
    false_answers: ShareLimit | None = None
    slices: Slices = ()
    small_changes: Annotated[Literal["pass", "block"] | None, Field(exclude=True)] = None
    fell: Annotated[BlockOrWarn | None, Field(exclude=True)] = None
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
        if not isinstance(data, Mapping):
            return data
        renamed = dict(data)
        if "always_valid" in renamed:  # the name of earlier versions, with ``runs`` for ``max``
            budget = renamed.pop("always_valid")
            if "candidates" in renamed:
                raise ValueError(
                    "always_valid is an earlier name of candidates: keep candidates alone"
                )
            is_old = isinstance(budget, Mapping) and [*budget] == ["runs"]
            renamed["candidates"] = {"max": budget["runs"]} if is_old else budget
        keys = renamed.keys() - ANSWER_CHECKS.keys()
        if renamed and not any(key in cls.model_fields for key in keys):
            renamed = {"checks": renamed}
        checks = renamed.get("checks")
        if isinstance(checks, Mapping):
            renamed |= {ANSWER_CHECKS[key]: checks[key] for key in checks if key in ANSWER_CHECKS}
            renamed["checks"] = {key: checks[key] for key in checks if key not in ANSWER_CHECKS}
        return renamed

    @model_validator(mode="after")
    def _check_answers(self) -> GatePolicy:
        if not (self.tolerances or self.false_answers):
            raise ValueError("checks: name at least one measure, such as nDCG@10: {max_drop: auto}")
        if self.answered is not None and self.answered.max_drop == AUTO:
            raise ValueError("checks.answered: give a number as max_drop, such as 0.02")
        return self

    @model_serializer(mode="wrap")
    def _omit_unused(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = serialize(self)
        unused = {key for key in ANSWER_CHECKS.values() if data.get(key) is None}
        return {key: value for key, value in data.items() if key not in unused}

    @property
    def ended_keys(self) -> tuple[str, ...]:
        """What became of the keys of earlier versions that the policy has, a sentence each."""
        return tuple(text for key, text in ENDED_KEYS.items() if getattr(self, key) is not None)

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of all measures, those of the checks first."""
        return tuple(dict.fromkeys([*self.checks, *(guard.measure for guard in self.guards)]))

    @property
    def runs(self) -> int:
        """R: candidates that share the level; 1 = none but this one."""
        return 1 if self.candidates is None else self.candidates.max

    @property
    def tolerances(self) -> dict[str, Tolerance]:
        """What may fall: the measures, and the share of answerable queries that are answered."""
        return self.checks | ({} if self.answered is None else {ANSWERED: self.answered})

    def slices_of(self, measure: str) -> tuple[str | None, ...]:
        """The slices of a measure: None = all queries, then query types and other slices."""
        slices = self.tolerances[measure].slices
        return (None, *(self.slices if slices is None else slices))


def locate_check(source: Source, measure: str) -> Location:
    """The path of a measure's tolerances; the short form of a policy has no ``checks``.

    Args:
        source: The experiment's file with its lines.
        measure: The measure as the policy names it.
    """
    places: tuple[Location, ...] = (("gate", measure), ("gate", "checks", measure))
    return next((path for path in places if path in source.lines), places[1])
