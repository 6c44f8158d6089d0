"""The rule about values without effect: parameters, switches of runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel

from fusion_bench.checks import lint_rule
from fusion_bench.checks.rules.blends import list_weights
from fusion_bench.config.models import Location
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.system import System
from fusion_bench.methods.blend import RerankBlend, RetrievalBlend
from fusion_bench.methods.blend.formulas import NoBlend, PositionAware
from fusion_bench.methods.fuse import Trainable
from fusion_bench.methods.fuse.rrf import RRFv2
from fusion_bench.methods.fuse.weighted_score import WeightedScore
from fusion_bench.ranking.plain_systems import remove_sources


def _build_switch_witness(
    subject: lint_rule.Subject, run: str, *, is_on: bool
) -> lint_rule.Witness:
    """Build a query whose list stays equal without the condition, or without the run."""
    system, names = lint_rule.without_blend(subject.system), subject.system.runs
    other = system
    if not is_on:
        with suppress(ConfigError):  # a fusion that needs the run is compared with nothing
            other = remove_sources(system, [run], [subject.roles_of(name) for name in names])
    answering = [name for name in names if is_on or name != run] or list(names)
    ranks = {f"d{i}": {name: 1 + (i + s) % 3 for s, name in enumerate(answering)} for i in range(3)}
    return lint_rule.Witness(
        system,
        f"{run} is on for every query" if is_on else f"{run} is off for every query",
        lint_rule.rank_lists(ranks),
        same_as=other,
        dataset=subject.dataset,
        off=frozenset() if is_on or other is system else frozenset({run}),
    )


#: Documents of a witness.
COUNT = 6


@dataclass(frozen=True)
class Idle:
    """A parameter without effect.

    Attributes:
        location: Its path in the system.
        message: Why it has none.
        other: The system with another value, which gives the same lists.
        system: The system that has it, where that is not the plain one.
    """

    location: Location
    message: str
    other: System
    system: System | None = None


@lint_rule.register_rule("no-effect")
def check_no_effect(subject: lint_rule.Subject) -> Iterator[lint_rule.Problem]:
    """A parameter whose value changes no list.

    Every such parameter that has not its default.
    """
    if not subject.sources:
        return
    checks = (_check_single_run, _check_depths, _check_blend)
    for idle in (idle for check in checks for idle in check(subject)):
        message = f"{'.'.join(map(str, idle.location))} has no effect: {idle.message}"
        yield lint_rule.Problem(message, idle.location, partial(_build_witness, subject, idle))
    facts = subject.dataset
    if facts is None or isinstance(subject.system.fusion, Trainable):
        return
    for i, name in enumerate(subject.system.runs):  # whose condition changes nothing
        switch = facts.switches.get(name)
        if switch is None or name not in subject.sources or 0 < switch.on < switch.queries:
            continue
        message = (
            f"when of run {name} has no effect: every query of {facts.name} meets "
            f"({switch.condition})"
        )
        if not switch.on:
            message = (
                f"run {name} has no effect: it is on where ({switch.condition}), and no query "
                f"of {facts.name} is"
            )
        build = partial(_build_switch_witness, subject, name, is_on=switch.on > 0)
        yield lint_rule.Problem(message, ("runs", i), build, of_whole=True)


def _is_stated(model: BaseModel, key: str) -> bool:
    """Whether a value is given that is not the default."""
    default = type(model).model_fields[key].get_default(call_default_factory=True)
    return key in model.model_fields_set and bool(getattr(model, key) != default)


def _change(system: System, part: str, **values: Any) -> System:  # noqa: ANN401 - any field's value
    """The system with other values in its fusion or its blend."""
    changed = getattr(system, part).model_copy(update=values)
    return system.model_copy(update={part: changed})


def _check_single_run(subject: lint_rule.Subject) -> Iterator[Idle]:
    """Parameters that weigh lists against each other, where there is one."""
    system, fusion, blend = subject.system, subject.system.fusion, subject.system.blend
    if len(subject.sources) > 1 or not fusion.keeps_single_list:
        return
    [source] = subject.sources
    retrieval = getattr(blend, "retrieval", "reciprocal_rank")
    reads_scores = system.min_relevance is not None or retrieval == "fused"
    is_mean = isinstance(fusion, WeightedScore)
    weights = getattr(fusion, "weights", None)
    is_weighed = bool(weights) and _is_stated(fusion, "weights") and len(system.runs) == 1
    if is_weighed and (is_mean or (subject.rank_fusion is not None and not reads_scores)):
        text = f"{source} is the only run, and its weight changes no order"
        yield Idle(("fusion", "weights"), text, _change(system, "fusion", weights={}))
    reads_spread = reads_scores or retrieval != "reciprocal_rank"
    if subject.rank_fusion is not None and _is_stated(fusion, "k") and not reads_spread:
        text = f"{source} is the only list, and every k keeps its order"
        yield Idle(("fusion", "k"), text, _change(system, "fusion", k=60))
    if is_mean and _is_stated(fusion, "missing"):
        text = f"{source} is the only list, so no document is missing"
        yield Idle(("fusion", "missing"), text, _change(system, "fusion", missing="skip"))


def _check_depths(subject: lint_rule.Subject) -> Iterator[Idle]:
    """Entries for ranks that do not occur."""
    system, fusion, blend = subject.system, subject.system.fusion, subject.system.blend
    depth = subject.depth
    if isinstance(fusion, RRFv2) and depth is not None:
        kept = _entries_within(fusion.bonus, depth)
        if len(kept) < len(fusion.bonus):
            gone = [rank for rank in fusion.bonus if rank not in kept]
            text = (
                f"no list is deeper than {depth}, so the bonus up to rank {gone[0]} is never given"
            )
            yield Idle(("fusion", "bonus"), text, _change(system, "fusion", bonus=kept))
    if isinstance(blend, PositionAware):
        kept = _entries_within(blend.tiers, blend.depth)
        if len(kept) < len(blend.tiers):
            gone = [rank for rank in blend.tiers if rank not in kept]
            text = f"the tier up to rank {gone[0]} begins below the rerank depth {blend.depth}"
            yield Idle(("blend", "tiers"), text, _change(system, "blend", tiers=kept))
        if _is_stated(blend, "rest") and max(blend.tiers, default=0) >= blend.depth:
            text = f"the tiers reach the rerank depth {blend.depth}"
            yield Idle(("blend", "rest"), text, _change(system, "blend", rest=0.4))
    threshold, is_plain = system.min_relevance, isinstance(blend, NoBlend)
    if subject.rank_fusion is not None and is_plain and threshold is not None and threshold <= 0:
        other = system.model_copy(update={"min_relevance": None})
        yield Idle(("min_relevance",), "every fused score is above 0", other)


def _entries_within(table: dict[int, float], depth: int) -> dict[int, float]:
    """The entries of a table by rank that begin at or above a depth."""
    starts = [1, *(rank + 1 for rank in table)]
    return {rank: table[rank] for rank, start in zip(table, starts, strict=False) if start <= depth}


def _check_blend(subject: lint_rule.Subject) -> Iterator[Idle]:
    """Parameters of the blend that another one switches off."""
    system, blend = subject.system, subject.system.blend
    if not isinstance(blend, RerankBlend):
        return
    if blend.always_rerank and _is_stated(blend, "skip_limit"):
        text = "always_rerank is true"
        yield Idle(("blend", "skip_limit"), text, _change(system, "blend", skip_limit=10))
    if blend.min_score is not None and blend.min_score <= 0:
        text = "rerank scores on the unit scale are never below 0"
        yield Idle(("blend", "min_score"), text, _change(system, "blend", min_score=None))
    if isinstance(blend, RetrievalBlend):
        system = subject.system
        retrieval, rerank = list_weights(blend)
        if not retrieval.any() and _is_stated(blend, "retrieval"):
            text = "the retrieval term weighs 0 at every rank"
            yield Idle(("blend", "retrieval"), text, _change(system, "blend", retrieval="fused"))
        is_clamped = getattr(system.fusion, "normalize", "none") == "three_lists"
        is_plain = blend.tail == "keep" and blend.min_score is None and blend.missing != "below"
        if not rerank.any() and is_plain and not is_clamped and system.min_relevance is None:
            text = f"the rerank score weighs 0 at every rank: {blend.reranker} is paid for in vain"
            other = system.model_copy(update={"blend": NoBlend()})
            yield Idle(("blend", "reranker"), text, other)


def _build_witness(subject: lint_rule.Subject, idle: Idle) -> lint_rule.Witness:
    """Lists in different orders, with rerank scores in yet another."""
    blend = subject.system.blend
    skipped = isinstance(blend, RerankBlend) and not blend.always_rerank
    count = max(COUNT, blend.skip_limit + 1) if skipped else COUNT  # type: ignore[attr-defined]
    lists: dict[str, lint_rule.RankedList] = {}
    for s, name in enumerate(subject.sources):
        ranked = ((f"d{1 + (i * (s + 1)) % count:02}", i) for i in range(count))
        lists[name] = {document: (i + 1, 1 / (i + 1)) for document, i in dict(ranked).items()}
    documents = sorted({document for ranked in lists.values() for document in ranked})
    units = {document: (1 + 5 * i % 7) / 8 for i, document in enumerate(documents)}
    return subject.make_witness(
        "the same list comes out with another value",
        lists,
        {document: lint_rule.to_raw_score(unit, subject.space) for document, unit in units.items()},
        same_as=idle.other,
        system=idle.system or subject.system,
    )
