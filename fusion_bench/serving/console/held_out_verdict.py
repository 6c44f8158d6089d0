"""Test a setting on the held-out queries, as ``tune`` does; this spends one look."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.checks.query_warnings import find_near_duplicates
from fusion_bench.config.parameters import Params
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.evaluation.run_experiment import report_provenance
from fusion_bench.experiment.system import System
from fusion_bench.report.answer_texts import name_verdict, unseen_losses
from fusion_bench.report.tuning_records import Gain, TuningVerdict
from fusion_bench.report.tuning_texts import (
    describe_claim,
    describe_look,
    format_gain,
    shown_condition,
)
from fusion_bench.serving.console.session import ConsoleSession
from fusion_bench.serving.console.setting import Setting
from fusion_bench.stats.unjudged import UnjudgedResult
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.held_out_report import HeldOutGains, SearchOutcome
from fusion_bench.tune.looks import (
    HeldOutLook,
    find_ledger,
    open_held_out_look,
)
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import SearchResult, Trial
from fusion_bench.util.files import name_experiment
from fusion_bench.util.formatting import format_loss_share, format_number

#: Params of the setting: the objective knows two systems, and no space.
CANDIDATE: Final[Params] = {"setting": "console"}


@dataclass(frozen=True, eq=False, repr=False)
class CandidateObjective(TuningObjective):
    """The baseline as the default, and one other system, as ``tune`` evaluates the two.

    Attributes:
        candidate: The system of the setting.
    """

    candidate: System | None = None

    @cached_property
    def default_params(self) -> Params:
        """Nothing is replaced in the baseline."""
        return {}

    def build_system(self, params: Params) -> System:
        """The candidate, or the baseline where nothing is replaced."""
        return self.system if not params or self.candidate is None else self.candidate


def ask_held_out(session: ConsoleSession, setting: Setting, reports: Path) -> dict[str, Any]:
    """Test a setting against the baseline on the held-out queries; the look is counted.

    Args:
        session: The session.
        setting: The setting.
        reports: Folder of reports, for a ledger that cannot stand beside the dataset.

    Raises:
        ConfigError: The setting has the values of the baseline.
        DataError: A rerank list is degraded, and the experiment refuses such lists.
        FusionBenchError: The ledger is malformed, or cannot be written.
    """
    candidate, _ = session.open_setting(setting)
    names = candidate.reranker_names | session.baseline.reranker_names
    for name in sorted(names) if session.tuning.degraded == "refuse" else ():
        if (reason := session.dataset.degradation(name)) is not None:
            raise DataError(f"{session.dataset_file}: {reason}")
    counter = find_ledger(
        session.tuning.looks,
        alpha=session.experiment.alpha,
        base=session.source.path.parent,
        dataset=session.dataset_file.parent,
        out=reports / name_experiment(session.source.path) / "tuning",
    )
    evaluation, outcome = _prepare(session, candidate)
    values = evaluation.objective.evaluate_params([{}, outcome.chosen.params])
    if np.array_equal(values[0], values[1]):
        raise ConfigError("verdict: the setting has the values of the baseline on every query")
    provenance = report_provenance(session.experiment, session.source)
    look = open_held_out_look(
        counter,
        evaluation,
        outcome,
        experiment=name_experiment(session.source.path),
        date=provenance.created,
        system=candidate.name,
    )
    evaluation = replace(evaluation, level=look.level, next_factor=look.next_factor)
    gains = HeldOutGains(evaluation, outcome, session.dataset)
    gain, _, _ = gains.family
    unjudged = gains.compare_unjudged()
    verdict = evaluation.decide_with_unjudged(gain, "tuned", unjudged)
    counter.close_look(look.look, verdict)
    record = None if unjudged is None else unjudged.record
    return _describe(session, candidate, gain, verdict, look, record)


def _prepare(session: ConsoleSession, candidate: System) -> tuple[HeldOutEvaluation, SearchOutcome]:
    """The evaluation of ``tune``, and a search that tried the baseline and the setting."""
    evaluator = session.evaluator
    objective = CandidateObjective(
        session.baseline,
        session.runs,
        evaluator.measures[0],
        (),
        contents=session.dataset.contents,
        candidate=candidate,
    )
    params = {**CANDIDATE, "system": candidate.model_dump_json(exclude={"name"})}
    rows = session.baseline_values[0], session.evaluator.evaluate(candidate)[0]
    means = [float(row.mean()) for row in rows]
    trials = (Trial(0, {}, means[0], "default"), Trial(1, params, means[1], "frozen"))
    evaluation = HeldOutEvaluation(
        objective,
        session.split,
        session.tuning,
        session.experiment.alpha,
        near_duplicates=find_near_duplicates(session.dataset, session.runs.queries),
        is_grouped=session.dataset.spec.grouping != "none",
    )
    return evaluation, SearchOutcome(SearchResult(trials), trials[1])


def _describe(
    session: ConsoleSession,
    candidate: System,
    gain: Gain,
    verdict: TuningVerdict,
    look: HeldOutLook,
    unjudged: UnjudgedResult | None,
) -> dict[str, Any]:
    measure = session.evaluator.measures[0].name
    claim = describe_claim(verdict, gain, session.tuning.min_gain)
    text = (
        f"Verdict: {name_verdict(verdict)}. The setting of {candidate.name} {claim} the baseline "
        f"{session.baseline.name} on the held-out queries of {session.dataset.name}"
        f"{shown_condition(verdict, unjudged)}: {measure} "
        f"{format_number(gain.default)} → {format_number(gain.tuned)} "
        f"({format_gain(gain, session.experiment.alpha)}). "
        f"The least gain is {format_number(session.tuning.min_gain)}."
    )
    if verdict == "ship":
        text += format_loss_share("The setting", gain.loss_share)
    if (unseen := unseen_losses(gain.groups)) is not None:
        text += f" {unseen}"
    return {
        "verdict": verdict,
        "text": text,
        "look": describe_look(look.record),
        "unjudged": "" if unjudged is None else unjudged.description,
        "gain": gain.model_dump(mode="json"),
        "level": look.level,
        "look_number": look.record.number,
        "is_repeated": look.record.is_repeated,
    }
