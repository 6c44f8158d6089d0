"""The data of a campaign as they were frozen: tuning queries, held-out queries, their values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fusion_bench._version import ENGINE, __version__
from fusion_bench.campaign.records import CampaignPlan
from fusion_bench.checks.lint import describe_dataset
from fusion_bench.checks.lint_rule import DatasetFacts
from fusion_bench.checks.obstacles import find_other_kinds
from fusion_bench.checks.unjudged import judgment_kind, measure_unjudged
from fusion_bench.config.models import parse_model
from fusion_bench.config.own_methods import list_own
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.system import System, merge_rules
from fusion_bench.io.campaign_ledger import HeldOutDigests
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.io.fingerprints import Fingerprint, query_digest
from fusion_bench.io.held_out import read_everything
from fusion_bench.measures import Measure, parse_measure
from fusion_bench.ranking.collapse import add_system_parents
from fusion_bench.ranking.plain_systems import needs_fitting
from fusion_bench.ranking.system_scores import evaluate_systems
from fusion_bench.stats.unjudged import JudgmentKind, UnjudgedEvidence

#: Hexadecimal digits of the digest of a new list.
LIST_DIGITS = 16
#: The version of the rule that decides; another one is another campaign.
RULE = 1


def code_versions() -> dict[str, str]:
    """What a decision depends on beside the data."""
    return {"rank-fusion-bench": __version__, "engine": str(ENGINE), "rule": str(RULE)}


def rebuild_system(config: Mapping[str, Any], name: str = "candidate") -> System:
    """A system from its resolved configuration."""
    return parse_model(System, {**config, "name": name}, name)


def refuse_other_parents(systems: Iterable[System], frozen: Collection[str], where: str) -> None:
    """Refuse systems that collapse by parents that the campaign did not freeze, or by id.

    Args:
        systems: The systems.
        frozen: The rules by which parents were found.
        where: Prefix of a message.
    """
    rules = merge_rules(systems)
    for name, (score, _) in rules.rows.items():
        raise ConfigError(
            f"{where}: by: id merges rows while a list is read, and a campaign reads it once for "
            f"all asks: delete collapse, and write 'collapse: {score}' at list {name!r} in the "
            "dataset.yaml"
        )
    for rule in rules.parents.keys() - frozen:
        raise ConfigError(
            f"{where}: the parents by {rule} are not frozen: write by: {{split: '#'}} if ids hold "
            f"them, or open another campaign, and give its experiment a system by {rule}"
        )


def refuse_own_code(system: System, name: str, measure: Measure | None = None) -> None:
    """Refuse methods of the user's own: they would see the held-out judgments, and may change.

    Args:
        system: With its stages.
        name: For the message.
        measure: What decides; None = it was checked.
    """
    configs = [part.resolved_config for _, part in system.list_parts()]
    for method, _ in list_own([*configs, None if measure is None else measure.model_dump()]):
        raise ConfigError(
            f"{name}: {method} is code of your own, and a campaign takes configurations only: name "
            "a method that 'fusion-bench methods' lists, or one of an installed package"
        )


@dataclass(frozen=True, eq=False)
class SystemValues:
    """One system on the queries of a campaign.

    Attributes:
        tuning: Shape (T,), of the tuning queries; None = it cannot be computed there.
        error: Why not; empty = it can.
        held_out: Shape (H,); empty = it cannot be computed there.
        evidence: Of the held-out queries; None = their judgments leave nothing to unjudged
            documents, or it cannot be computed.
    """

    tuning: FloatArray | None
    error: str
    held_out: FloatArray
    evidence: UnjudgedEvidence | None


@dataclass(frozen=True, eq=False)
class FrozenData:
    """A dataset, and how its queries are split.

    Attributes:
        dataset: With the lists that candidates may read.
        tuning: Aligned, the tuning queries.
        held_out: Aligned, the held-out queries.
        measure: What decides.
    """

    dataset: Dataset
    tuning: AlignedRuns
    held_out: AlignedRuns
    measure: Measure

    @cached_property
    def kind(self) -> JudgmentKind:
        """What the judgments of the held-out queries say of unjudged documents."""
        return judgment_kind(self.dataset, self.held_out.queries)

    @cached_property
    def facts(self) -> DatasetFacts:
        """What lint knows of the lists and queries; no judgment is read for it."""
        return describe_dataset(self.dataset)

    @property
    def tuning_groups(self) -> IntArray:
        """(T,): codes of the groups."""
        return self.tuning.group_codes

    @cached_property
    def _known(self) -> dict[str, SystemValues]:
        """Values by configuration: those of the baselines."""
        return {}

    def refuse_other_kinds(self, system: System, where: str) -> None:
        """Refuse a system whose results are chunks while documents are judged, or the reverse.

        Raises:
            ConfigError: Says what to write; or no chunk has a parent.
        """
        for obstacle in find_other_kinds([system], add_system_parents(self.tuning, [system])):
            raise ConfigError(f"{where}: {obstacle.statement}")

    def measure_baseline(self, config: Mapping[str, Any]) -> SystemValues:
        """Values of a baseline, kept as long as the data are."""
        key = repr(config)
        if key not in self._known:
            self._known[key] = self.measure_system(rebuild_system(config, "baseline"))
        return self._known[key]

    def measure_system(self, system: System) -> SystemValues:
        """Values of a system on all queries; nothing is left out, whatever comes out first."""
        tuning, error = self.evaluate(system, self.tuning)
        held_out, _ = self.evaluate(system, self.held_out)
        evidence = None
        if held_out is not None and self.kind in {"pooled", "dropped zeros"}:
            training = self.tuning if needs_fitting(system) else None
            [evidence] = measure_unjudged(system, self.held_out, [self.measure], training=training)
        return SystemValues(tuning, error, np.zeros(0) if held_out is None else held_out, evidence)

    def evaluate(self, system: System, runs: AlignedRuns) -> tuple[FloatArray | None, str]:
        """(Q,) values, or why there are none. What is trained learns from tuning queries alone."""
        training = self.tuning if needs_fitting(system) else None
        try:
            [scores] = evaluate_systems([system], runs, [self.measure], training=training)
        except FusionBenchError as error:
            return None, str(error)
        return scores.values[0], ""


def load_whole(path: Path, plan: CampaignPlan | None = None, new: Collection[str] = ()) -> Dataset:
    """Read a dataset with the queries that campaigns hold out.

    Args:
        path: The ``dataset.yaml``.
        plan: Names the lists, and fixes the groups; None = all lists, and groups are looked for.
        new: Lists that the plan does not name, as ``runs/NAME`` and ``rerank/NAME``; those that
            are gone are left out.

    Raises:
        FusionBenchError: A file is not there, or breaks a rule.
    """
    with read_everything():
        if plan is None:
            return load_dataset(path)
        spec, _ = read_spec(path)
        dataset = load_dataset(
            path,
            runs=spec.runs.keys() & {*plan.runs, *_names_of("runs/", new)},
            rerankers=spec.rerank.keys() & {*plan.rerankers, *_names_of("rerank/", new)},
            groups=plan.groups,
        )
        return dataset.with_parents(plan.parents)


def _names_of(prefix: str, keys: Iterable[str]) -> set[str]:
    return {key.removeprefix(prefix) for key in keys if key.startswith(prefix)}


def describe_lists(dataset: Dataset, new: Iterable[str]) -> tuple[str, ...]:
    """New lists as a ledger names them: each with a digest of what is in it and how it is read.

    Args:
        dataset: Those that it lacks are left out.
        new: As ``runs/NAME`` and ``rerank/NAME``.
    """
    parts = dataset.contents.parts
    lists = []
    for key in sorted(set(parts).intersection(new)):
        inside = {name: each for name, each in parts.items() if f"{name}.".startswith(f"{key}.")}
        lists.append(f"{key} {Fingerprint(inside).digest[:LIST_DIGITS]}")
    return tuple(lists)


def name_lists(described: Iterable[str]) -> list[str]:
    """The keys of lists that a ledger names with their digests."""
    return sorted({text.rpartition(" ")[0] for text in described})


def freeze_dataset(dataset: Dataset, plan: CampaignPlan, held_out: HeldOutDigests) -> FrozenData:
    """Align a dataset that was read whole, and split its queries.

    Args:
        dataset: With the lists that candidates may read.
        plan: Names the measure, the tie rule, and the tuning queries.
        held_out: Which queries decide.
    """
    runs = dataset.align_repeats([*dataset.runs], ties=plan.ties).common_repeats()
    digests = [query_digest(query) for query in runs.queries]
    relevance = dataset.spec.binary_relevance

    def select(chosen: Sequence[str]) -> BoolArray:
        members = frozenset(chosen)
        return np.array([digest in members for digest in digests], dtype=bool)

    return FrozenData(
        dataset,
        runs.subset(select(plan.tuning)),
        runs.subset(select(held_out.queries)),
        parse_measure(plan.measure, binary_relevance=relevance, where="campaign"),
    )


def find_changes(plan: CampaignPlan, dataset: Dataset, recorded: Sequence[str] = ()) -> str:
    """What is not as it was frozen; empty = everything is.

    Args:
        plan: What it froze.
        dataset: As it is now.
        recorded: New lists with their digests, as the ledger names them.
    """
    runs = {f"runs/{name}" for name in dataset.runs}
    others = {*runs, *(f"rerank/{name}" for name in dataset.rerankers)}.difference(plan.contents)
    parts = {
        name: value
        for name, value in dataset.contents.parts.items()
        if name not in others and not name.startswith(tuple(f"{key}." for key in others))
    }
    there = Fingerprint(dict.fromkeys(describe_lists(dataset, others), ""))
    known = Fingerprint(dict.fromkeys(recorded, ""))
    before = Fingerprint(plan.contents) | Fingerprint(plan.versions) | known
    now = Fingerprint(parts) | Fingerprint(code_versions())
    return (now | there).summarize_changes(there | before)
