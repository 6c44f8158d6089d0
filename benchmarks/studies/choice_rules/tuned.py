"""Our own rule: split, search, selection and verdict are the functions of ``fusion-bench tune``.

Only the values are looked up. Near-duplicate queries and unjudged documents, which can withhold a
``ship`` and never cause one, are left out. The look is the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from benchmarks.collections import MEASURE
from benchmarks.studies.choice_rules.grid import CONSTANTS, RRF, SETTINGS, TENTHS, Setting
from benchmarks.studies.choice_rules.rules import FAMILIES, PLACES, TRIALS, Choice
from fusion_bench.config.parameters import Parameter, Params
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, make_readonly
from fusion_bench.data.query_splits import split_queries
from fusion_bench.errors import ConfigError
from fusion_bench.experiment.settings import TuneSettings
from fusion_bench.experiment.system import System
from fusion_bench.io.dataset import Dataset
from fusion_bench.io.fingerprints import Fingerprint
from fusion_bench.tune.held_out import HeldOutEvaluation
from fusion_bench.tune.held_out_report import HeldOutGains, SearchOutcome
from fusion_bench.tune.looks import look_level
from fusion_bench.tune.objective import TuningObjective
from fusion_bench.tune.search import run_search
from fusion_bench.tune.trial_selection import choose_trial, describe_choice, fit_default_folds

#: The axes of the grid.
PARAMETERS: Final = (
    Parameter("family", "choice", choices=FAMILIES),
    Parameter("tenths", "int", TENTHS[0], TENTHS[-1]),
    Parameter("k", "int", 0, len(CONSTANTS) - 1, when=(("family", (RRF,)),)),
)
ALPHA: Final = 0.05
#: In place of a verdict, where the command ends with an error.
REFUSED: Final = "refused"


def to_params(setting: Setting) -> Params:
    """A setting as a point of the axes."""
    params: dict[str, str | int] = {"family": setting.family, "tenths": setting.tenths}
    return params if setting.k is None else {**params, "k": CONSTANTS.index(setting.k)}


def to_place(params: Params) -> int:
    """The place in the grid of a point of the axes."""
    k = CONSTANTS[int(str(params["k"]))] if "k" in params else None
    return PLACES[Setting(str(params["family"]), int(str(params["tenths"])), k)]


@dataclass(frozen=True, eq=False, repr=False)
class LookedUpObjective(TuningObjective):
    """An objective whose values are known.

    Attributes:
        values: Shape (T, Q): of every setting of the grid.
        default_place: The place of the default.
    """

    values: FloatArray = field(kw_only=True)
    default_place: int = field(kw_only=True)

    @cached_property
    def default_params(self) -> Params:
        """The default as a point of the axes."""
        return to_params(SETTINGS[self.default_place])

    @cached_property
    def preset_params(self) -> tuple[Params, ...]:
        """None: the grid has no presets."""
        return ()

    def free_weights(self, params: Params) -> frozenset[str]:  # noqa: ARG002 - as its parent
        """None: a setting has one weight."""
        return frozenset()

    def evaluate_params(self, trials: Sequence[Params]) -> FloatArray:
        """The values of each trial, (T, Q)."""
        values = self.values[[to_place(params) for params in trials]]
        make_readonly(values)
        return values

    def failure_reason(self, params: Params) -> str | None:  # noqa: ARG002 - as its parent
        """None: every setting can be computed."""
        return None

    def subset_queries(self, keep: BoolArray) -> LookedUpObjective:
        """The same on some queries."""
        if keep.all():
            return self
        return replace(self, runs=self.runs.subset(keep), values=self.values[:, keep])

    def build_system(self, params: Params) -> System:  # noqa: ARG002 - as its parent
        """The default: nothing is ranked."""
        return self.system


@dataclass(frozen=True)
class Tuned:
    """What ``fusion-bench tune`` would say.

    Attributes:
        choice: The chosen setting, and whether it ships.
        verdict: Of section 8 of the semantics; or ``refused``.
    """

    choice: Choice
    verdict: str


def tune_looked_up(
    dataset: Dataset, runs: AlignedRuns, values: FloatArray, default: int, seed: int
) -> Tuned:
    """Split, search, choose and decide as ``fusion-bench tune`` does, with 100 trials.

    Args:
        dataset: The collection, for its own splits.
        runs: The queries that take part, without candidates.
        values: Shape (T, Q).
        default: Its place in the grid.
        seed: Of the split and of the search, so that worlds differ in more than their grades.
    """
    objective = LookedUpObjective(
        System.model_validate({"name": "default", "runs": runs.sources, "fusion": RRF}),
        runs,
        MEASURE,
        PARAMETERS,
        contents=Fingerprint({}),
        values=values,
        default_place=default,
    )
    tuning = TuneSettings(
        system="default", trials=TRIALS, seed=seed, split_seed=f"fusion-bench-{seed}"
    )
    try:
        split = split_queries(runs, dataset.queries, split_seed=tuning.split_seed)
        tuning, split = fit_default_folds(runs.groups, split, tuning)
    except ConfigError:  # too few groups to tune on: the command ends with that
        return Tuned(Choice(default, False, 0.0), REFUSED)
    evaluation = HeldOutEvaluation(objective, split, tuning, ALPHA, level=look_level(1, ALPHA))
    result = run_search(objective, split.tune, tuning.search_settings())
    chosen = choose_trial(objective, result, split.tune, tuning.choose)
    gain, *_ = HeldOutGains(evaluation, SearchOutcome(result, chosen), dataset).family
    verdict = evaluation.decide_verdict(gain, describe_choice(result, chosen))
    return Tuned(Choice(to_place(chosen.params), verdict == "ship", gain.difference), verdict)
