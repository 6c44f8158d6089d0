"""One ask of a campaign: the charge, the test, the answer; at its end the values of all asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fusion_bench.campaign import frozen_data, records
from fusion_bench.campaign.decision import HeldOutTest, is_screened, phase_share, run_held_out_test
from fusion_bench.campaign.frozen_data import FrozenData, SystemValues
from fusion_bench.campaign.records import CampaignReport, CampaignRules, ClosedAsk
from fusion_bench.campaign.state import CampaignPaths, CampaignState
from fusion_bench.checks.lint import lint_systems
from fusion_bench.config.models import parse_model
from fusion_bench.config.plugins import refuse_references
from fusion_bench.config.yaml_files import Source, read_yaml
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.details.relevant_ranks import list_relevant, take_relevant
from fusion_bench.evaluation.failures import TOP, rank_stages
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.overrides import apply_overrides
from fusion_bench.experiment.system import System
from fusion_bench.io.campaign_ledger import CampaignEvent, make_event
from fusion_bench.io.dataset_config import read_spec
from fusion_bench.ranking.collapse import add_system_parents, collapse_pool
from fusion_bench.report.tuning_records import Gain
from fusion_bench.stats.intervals import ALPHA, betting_bound
from fusion_bench.stats.values import MeasuredValues, Pair
from fusion_bench.tune.held_out import student_gain
from fusion_bench.util.formatting import Progress, ignore_progress

#: The name of a candidate in messages.
CANDIDATE = "candidate"


@dataclass(frozen=True)
class AskedCandidate:
    """What is asked about.

    Attributes:
        source: One system as YAML says it; None = the baseline of the phase.
        changes: ``KEY=VALUE`` each, such as ``fusion.k=20``: values that replace its own.
        allow_lists: Whether it may read lists that the dataset has got since.
        may_import: Whether it may name code of an installed package, ``package.module:Name``.
    """

    source: Source | None = None
    changes: tuple[str, ...] = ()
    allow_lists: bool = False
    may_import: bool = True

    @classmethod
    def read(
        cls, path: Path | None, changes: Sequence[str] = (), *, allow_lists: bool = False
    ) -> AskedCandidate:
        """Read a candidate's file.

        Raises:
            ConfigError: It is not there, not YAML, or an experiment; or neither file nor change is
                given.
        """
        if path is None and not changes:
            raise ConfigError("no candidate: name a YAML file of one system, or --set KEY=VALUE")
        source = None if path is None else read_yaml(path)
        if source is not None and "systems" in source.data:
            raise ConfigError(
                f"{path}: an experiment, and a candidate is one system: write what is below a "
                "name of 'systems' into a file of its own"
            )
        return cls(source, tuple(changes), allow_lists)

    def resolve(self, baseline: Mapping[str, Any], dataset: str, name: str = CANDIDATE) -> System:
        """The system, as an experiment on the dataset reads it.

        Args:
            baseline: Configuration that changes are made to where no file is given.
            dataset: Name of the dataset.
            name: Of the baseline, for changes.

        Raises:
            ConfigError: It breaks a rule; names the key.
        """
        given = Source(Path(CANDIDATE), dict(baseline)) if self.source is None else self.source
        inside = ("systems", CANDIDATE)
        data = {"dataset": dataset, "baseline": CANDIDATE, "systems": {CANDIDATE: given.data}}
        lines = {(*inside, *place): line for place, line in given.lines.items()}
        prefix = ".".join((*inside, ""))
        changes = []
        for change in self.changes:  # of the baseline, systems.NAME. may be left out
            key = change.partition("=")[0]
            rest = change.removeprefix(f"systems.{name}.")
            if rest == change and (key == "systems" or key.startswith("systems.")):
                raise ConfigError(
                    f"--set {change}: an ask changes one system: write --set fusion.k=20, or "
                    f"--set systems.{name}.fusion.k=20"
                )
            changes.append(f"{prefix}{rest}")
        try:
            source = apply_overrides(Source(given.path, data, lines), changes)
            if not self.may_import:
                refuse_references(source.data["systems"], CANDIDATE)
            experiment = parse_model(Experiment, source.data, source.where).apply_switch()
        except ConfigError as error:  # its file has no key of that name
            form = f": --set changes {name!r}, the baseline: --set fusion.k=20"
            shown = str(error).replace(prefix, "")
            raise ConfigError(f"{shown}{'' if self.source else form}") from None
        system = experiment.systems[CANDIDATE]
        frozen_data.refuse_own_code(system, CANDIDATE)
        return system


@dataclass(eq=False)
class Referee:
    """Answers the asks of one campaign; a server keeps one, so that the data are read once.

    Attributes:
        paths: Where the campaign stands.
        is_served: Whether the data in memory are kept, whatever becomes of the files.
    """

    paths: CampaignPaths
    is_served: bool = False
    _data: dict[tuple[str, ...], frozen_data.FrozenData] = field(default_factory=dict, repr=False)

    def read_status(self) -> records.CampaignStatus:
        """How the campaign stands."""
        return self.paths.read_state().describe()

    def prepare(self) -> None:
        """Read the data, and compute the baseline."""
        state = self.paths.read_state()
        self._load(state, []).measure_baseline(state.baseline_of(state.phase))

    def ask(self, candidate: AskedCandidate, *, explain: bool = False) -> records.CampaignAnswer:
        """Count an ask, test its candidate, and answer; the answer is on disk before it is told.

        Args:
            candidate: What is asked about.
            explain: List the relevant documents that it loses.

        Raises:
            ConfigError: The candidate breaks a rule; nothing is counted.
            DataError: The ledger was edited, shortened or removed.
        """
        state = self.paths.read_state()
        if state.closed_by:
            return _refuse(state, state.closed_reason)
        spec, _ = read_spec(self.paths.dataset)
        system = candidate.resolve(state.baseline_of(state.phase), spec.name, state.plan.baseline)
        known = {f"runs/{name}" for name in state.plan.runs}
        known |= {f"rerank/{name}" for name in state.plan.rerankers}
        there = {f"runs/{name}" for name in spec.runs} | {f"rerank/{name}" for name in spec.rerank}
        new = sorted((system.list_keys & there) - known)
        frozen_data.refuse_other_parents([system], state.plan.parents, CANDIDATE)
        unknown = sorted({*new}.difference(frozen_data.name_lists(state.shipped_lists)))
        if unknown and not candidate.allow_lists:
            raise ConfigError(
                f"{CANDIDATE}: {unknown[0]} was not there when the campaign was opened, and a new "
                "list is no configuration: allow it with --allow-lists, which the log will name"
            )
        data = self._load(state, new)
        if changes := frozen_data.find_changes(state.plan, data.dataset, state.shipped_lists):
            return _refuse(state, f"what it froze has changed: {changes}")
        roles, rerankers = data.dataset.spec.run_roles, tuple(data.dataset.rerankers)
        runs = {name: roles[name] for name in data.dataset.runs}
        for place, problem in system.find_misfits(runs, rerankers):
            raise ConfigError(f"{CANDIDATE}: {'.'.join(map(str, place))}: {problem}")
        data.refuse_other_kinds(system, CANDIDATE)
        lists = frozen_data.describe_lists(data.dataset, new)
        before = state.find_ask(system.resolved_config, lists)
        if before is None and (state.closed_reason or not state.asks_left):
            return _refuse(state, state.closed_reason or "all declared asks are made")
        state, ask = self._count(system, lists)
        if ask is None:
            return _refuse(state, "all declared asks are made")
        return self._answer(
            state, ask, system, data, is_repeated=before is not None, explain=explain
        )

    def _load(self, state: CampaignState, new: Sequence[str]) -> frozen_data.FrozenData:
        key = tuple(sorted({*new, *frozen_data.name_lists(state.shipped_lists)}))
        if key not in self._data or not self.is_served:
            dataset = frozen_data.load_whole(self.paths.dataset, state.plan, key)
            self._data[key] = frozen_data.freeze_dataset(dataset, state.plan, state.held_out)
        return self._data[key]

    def _count(
        self, system: System, lists: tuple[str, ...]
    ) -> tuple[CampaignState, CampaignEvent | None]:
        """Charge for the ask, unless it was made before; None = none is left."""
        config = system.resolved_config

        def charge(events: list[CampaignEvent]) -> list[CampaignEvent]:
            state = self.paths.find_state(events)
            if state.find_ask(config, lists) is not None or not state.asks_left:
                return []
            number = len(state.asks) + 1
            return [make_event(state.campaign, "ask", number=number, config=config, lists=lists)]

        state = self.paths.append(charge)
        return state, state.find_ask(config, lists)

    def _answer(
        self,
        state: CampaignState,
        ask: CampaignEvent,
        system: System,
        data: frozen_data.FrozenData,
        *,
        is_repeated: bool,
        explain: bool,
    ) -> records.CampaignAnswer:
        """Test the candidate of a counted ask, and write the answer; an old one stays."""
        number = ask.number or 0
        phase = state.phases[number]
        config = state.baseline_of(phase)
        candidate, baseline = data.measure_system(system), data.measure_baseline(config)
        judgment = judge_candidate(
            data, system, candidate, baseline, rules=state.plan.rules, phase=phase
        )
        state = self._record(number, phase, "ship" if judgment.ships else "keep")
        shown = frozen_data.rebuild_system(config, "baseline") if explain else None
        return records.CampaignAnswer(
            campaign=state.campaign,
            number=number,
            answer=state.answers[number],
            asks_left=state.asks_left,
            phase=phase,
            is_repeated=is_repeated,
            guarantee=state.guarantee,
            no_guarantee=state.no_guarantee,
            tuning=_describe_tuning(data, system, candidate, baseline, shown),
            error=candidate.error,
        )

    def _record(self, number: int, phase: int, word: Literal["ship", "keep"]) -> CampaignState:
        """Write an answer; where another ask has shipped in this phase since, it is ``keep``."""

        def add(events: list[CampaignEvent]) -> list[CampaignEvent]:
            state = self.paths.find_state(events)
            if number in state.answers:
                return []
            is_late = len(state.ships) >= phase
            told = "keep" if is_late else word
            return [make_event(state.campaign, "answer", number=number, answer=told)]

        return self.paths.append(add)


def _describe_tuning(
    data: frozen_data.FrozenData,
    system: System,
    candidate: frozen_data.SystemValues,
    baseline: frozen_data.SystemValues,
    baseline_system: System | None = None,
) -> records.TuningAnswer | None:
    """Everything about the tuning queries.

    Args:
        data: The queries.
        system: The candidate.
        candidate: Its values.
        baseline: Those of the baseline of the phase.
        baseline_system: The baseline, where lost documents are asked for.

    Returns:
        None where the candidate cannot be computed.
    """
    if candidate.tuning is None or baseline.tuning is None:
        return None
    pair = Pair.from_arrays(
        *(candidate.tuning, baseline.tuning, data.tuning.groups),
        is_bounded=data.measure.is_bounded,
    )
    gain, difference = student_gain(pair), pair.difference
    order = np.argsort(difference, kind="stable")
    changes = tuple(
        records.TuningChange(
            query=data.tuning.queries[q],
            baseline=float(baseline.tuning[q]),
            candidate=float(candidate.tuning[q]),
        )
        for q in order[difference[order] != 0].tolist()
    )
    lost = None
    if baseline_system is not None:
        ranks, relevance = [], data.dataset.spec.binary_relevance
        for each in (baseline_system, system):
            runs = add_system_parents(data.tuning.restrict(tuple(each.base_runs)), [each])
            pool = collapse_pool(runs, [each])
            relevant = list_relevant(pool, data.dataset.qrels, relevance)
            ranks.append(take_relevant(rank_stages(each, runs, pool).returned, relevant))
        before, after = ranks
        fell = (before > 0) & (before <= TOP) & ((after == 0) | (after > TOP))
        lost = tuple(
            records.LostDocument(
                query=runs.queries[relevant.query[m]],
                document=relevant.documents[m],
                grade=int(relevant.grades[m]),
                baseline_rank=int(before[m]),
                rank=int(after[m]) or None,
            )
            for m in np.flatnonzero(fell)
        )
    lint = tuple(problem.to_finding(None) for problem in lint_systems([system], [data.facts]))
    return records.TuningAnswer(gain=gain, changes=changes, lint=lint, lost=lost)


def _refuse(state: CampaignState, reason: str) -> records.CampaignAnswer:
    return records.CampaignAnswer(
        campaign=state.campaign,
        number=None,
        answer="closed",
        reason=reason,
        asks_left=state.asks_left,
        phase=state.phase,
        guarantee=state.guarantee,
        no_guarantee=state.no_guarantee,
    )


@dataclass(frozen=True)
class AskJudgment:
    """What decides on a candidate.

    Attributes:
        test: On the held-out queries.
        is_screened: Not better on the tuning queries, and so not tested.
        is_withheld: Unjudged documents decide, a list is degraded, few differences are skewed
            against the gain, or no value can be computed.
    """

    test: HeldOutTest
    is_screened: bool
    is_withheld: bool

    @property
    def ships(self) -> bool:
        """Whether the candidate is the next baseline."""
        return self.test.ships and not self.is_screened and not self.is_withheld


def judge_candidate(
    data: FrozenData,
    system: System,
    candidate: SystemValues,
    baseline: SystemValues,
    *,
    rules: CampaignRules,
    phase: int,
) -> AskJudgment:
    """Test a candidate; every part is computed whatever another one says.

    Args:
        data: The queries.
        system: The candidate.
        candidate: Its values.
        baseline: Those of the baseline of the phase.
        rules: What was declared.
        phase: From 1.
    """
    pair = pair_held_out(data, candidate, baseline)
    test = run_held_out_test(
        pair.difference,
        pair.groups,
        share=phase_share(phase, ships=rules.ships, asks=rules.asks, level=rules.level),
        min_gain=rules.min_gain,
        is_bounded=pair.is_bounded,
        tails=rules.tails,
    )
    screened = True
    if candidate.tuning is not None and baseline.tuning is not None:
        tuning = Pair.from_arrays(candidate.tuning, baseline.tuning, data.tuning.groups)
        screened = is_screened(tuning.difference, tuning.groups)
    unjudged = pair.compare_unjudged(ALPHA)
    reasons = [
        unjudged is not None and unjudged.decides(1, rules.min_gain),
        any(data.dataset.degraded(name) for name in system.reranker_names),
        not len(candidate.held_out),
    ]
    return AskJudgment(test, screened, any(reasons))


def pair_held_out(data: FrozenData, candidate: SystemValues, baseline: SystemValues) -> Pair:
    """The candidate and the baseline on the held-out queries; 0 if one cannot be computed."""
    sides, keys = (candidate, baseline), data.held_out.groups
    has_both = all(len(side.held_out) for side in sides)
    first, second = (
        MeasuredValues(side.held_out if has_both else np.zeros(len(keys)), unjudged=side.evidence)
        for side in sides
    )
    return Pair(first, second, keys, is_bounded=data.measure.is_bounded, kind=data.kind)


def close_campaign(
    paths: CampaignPaths, by: str, progress: Progress = ignore_progress
) -> CampaignReport:
    """Close a campaign for good, and compute what its asks found; a closed one is computed again.

    Args:
        paths: Where it stands.
        by: The person who closes it.
        progress: Called for each ask.

    Raises:
        ConfigError: Nobody is named.
        DataError: The ledger was edited, shortened or removed, or the data are not as frozen.
    """
    if not by.strip():
        raise ConfigError("--by: name the person who closes the campaign")
    before = paths.read_state()
    new = [text for ask in before.asks for text in ask.lists]
    dataset = frozen_data.load_whole(paths.dataset, before.plan, frozen_data.name_lists(new))
    if changes := frozen_data.find_changes(before.plan, dataset, new):
        progress(f"values are those of changed data: {changes}", 0, 1)

    def add(events: list[CampaignEvent]) -> list[CampaignEvent]:
        state = paths.find_state(events)
        closing = make_event(state.campaign, "close", by=by)
        return [] if state.closed_by else [closing]

    state = paths.append(add)
    data = frozen_data.freeze_dataset(dataset, state.plan, state.held_out)
    asks = tuple(_describe_asks(state, data, progress))
    first = data.measure_baseline(state.plan.config)
    shipped: tuple[float, ...] = ()
    if state.ships:
        last = data.measure_baseline(state.baseline_of(len(state.ships) + 1))
        shipped = tuple(last.held_out.tolist())
    return CampaignReport(
        status=before.describe(),
        closed_by=state.closed_by,
        overrides=tuple(f"{event.by}: {event.command}" for event in state.overrides),
        changes=changes,
        asks=asks,
        held_out=tuple(data.held_out.queries),
        baseline_values=tuple(first.held_out.tolist()),
        shipped_values=shipped,
    )


def _describe_asks(
    state: CampaignState, data: frozen_data.FrozenData, progress: Progress
) -> Iterator[ClosedAsk]:
    for count, ask in enumerate(state.asks, 1):
        progress("computing asks", count, len(state.asks))
        number, config = ask.number or 0, dict(ask.config or {})
        phase, system = state.phases[number], frozen_data.rebuild_system(config)
        baseline = data.measure_baseline(state.baseline_of(phase))
        values = data.measure_system(system)
        judgment = judge_candidate(
            data, system, values, baseline, rules=state.plan.rules, phase=phase
        )
        tuning = None
        if values.tuning is not None and baseline.tuning is not None:
            tuning = float((values.tuning - baseline.tuning).mean())
        is_known = len(values.held_out) and len(baseline.held_out)
        gain = _measure_gain(data, values, baseline, judgment) if is_known else None
        answer = state.answers.get(number)
        yield ClosedAsk(
            number=number,
            date=ask.date,
            phase=phase,
            answer=answer,
            config=dict(config),
            lists=ask.lists,
            tuning_gain=tuning,
            is_screened=judgment.is_screened,
            is_contradicted=answer == "ship" and not judgment.ships,
            gain=gain,
            log_e_value=judgment.test.log_e_value,
        )


def _measure_gain(
    data: frozen_data.FrozenData,
    candidate: frozen_data.SystemValues,
    baseline: frozen_data.SystemValues,
    judgment: AskJudgment,
) -> Gain:
    """The held-out gain; with bounded tails its interval is the betting one, at the ask's share."""
    share = judgment.test.share
    pair = pair_held_out(data, candidate, baseline)
    gain = student_gain(pair, alpha=2 * share)
    if judgment.test.tails == "t":
        return gain
    low, high = (
        sign * betting_bound(sign * pair.difference, pair.groups, alpha=share) for sign in (1, -1)
    )
    return gain.model_copy(update={"low": low, "high": high})
