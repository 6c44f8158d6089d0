"""When a tuned system abstains: a signal from tuning queries, a threshold from held-out ones."""

from __future__ import annotations

from fusion_bench.config.models import parse_model
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.query_splits import dataset_split
from fusion_bench.errors import UnknownNameError
from fusion_bench.evaluation.answered_queries import (
    NO_UNANSWERABLE,
    find_queries,
    hold_out_queries,
)
from fusion_bench.evaluation.prepared_dataset import (
    ALL_JUDGED,
    add_unjudged_queries,
    prepare_dataset,
)
from fusion_bench.evaluation.thresholds import ThresholdSettings, choose_signal
from fusion_bench.experiment.experiment import Experiment
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.ranking.query_signals import compute_signals
from fusion_bench.report.tuning_records import TunedThreshold, TuningReport


def fit_threshold(
    experiment: Experiment,
    source: Source,
    tuning: TuneSettings,
    dataset: Dataset,
    report: TuningReport,
) -> TunedThreshold | None:
    """The signal and the threshold of the tuned system; None if it states no share.

    Args:
        experiment: The tuned experiment.
        source: Where it was read from.
        tuning: The settings.
        dataset: The dataset.
        report: Of the tuning run.

    Raises:
        FusionBenchError: The system has none of the signals that it names on these lists.
    """
    system = parse_model(System, {**report.choice.config, "name": report.system})
    abstain = system.abstain
    if abstain is None or abstain.limit is None:
        return None
    changed = experiment.model_copy(update={"systems": {system.name: system}, **ALL_JUDGED})
    task = add_unjudged_queries(prepare_dataset(changed, source, dataset, is_shown=False))
    queries = find_queries(task)
    if queries.answerable.all():
        return TunedThreshold(false_answers=abstain.limit, reason=NO_UNANSWERABLE)
    known = compute_signals(task.fit_system(system), queries.runs)
    names = [name for name in abstain.names or known if name in known]
    if not names:
        where = source.where(("systems", system.name, "abstain", "signal"))
        raise UnknownNameError("signal", abstain.names[0], known, where=where)
    ids = queries.runs.queries
    own = None if report.split_seed else dataset_split(ids, task.dataset.queries)
    held_out = hold_out_queries(
        queries,
        {*report.held_out_queries},
        split_seed=tuning.split_seed,
        share=tuning.held_out,
    )
    tune, held_out = (~held_out, held_out) if own is None else (own.tune, own.held_out)
    parts = (tune if len(names) > 1 else held_out, held_out)
    settings = ThresholdSettings(false_answers=abstain.limit, seed=tuning.seed)
    signals = {(system.name, name): known[name] for name in names}
    chosen, reason = choose_signal(signals, queries, parts, settings, dataset)
    if chosen is not None and chosen.threshold is None:
        reason = f"every value of {chosen.signal} is above the threshold: name another signal"
        chosen = None
    return TunedThreshold(false_answers=abstain.limit, chosen=chosen, reason=reason)
