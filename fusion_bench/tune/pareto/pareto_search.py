"""Quality against effort: what each rerank depth is worth, and which depths are worth their price.

Good settings are taken to every depth, and a multi-objective sampler looks for what only pays at
small ones. All of it on the tuning queries; the held-out ones say how much of it to believe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fusion_bench.config.parameters import Parameter, Params, integer
from fusion_bench.io.provenance import ListMeta
from fusion_bench.report.tuning import tuning_records as model
from fusion_bench.tune.pareto.evaluated_points import EvaluatedPoints
from fusion_bench.tune.pareto.multi_objective import search_tradeoffs
from fusion_bench.tune.pareto.pareto_report import (
    EffortAxis,
    comparable_axes,
    effort_on,
    front_points,
)
from fusion_bench.tune.pareto.rerank_cost import RerankerCost, reranker_costs
from fusion_bench.tune.pareto.rerank_depths import (
    at_depth,
    depth_ladder,
    is_depth_path,
    max_rerank_depth,
    reranker_names,
    with_reranker,
)
from fusion_bench.tune.search.search import SearchResult, search_fingerprint
from fusion_bench.tune.search.trial_log import Trial, TrialLog
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.held_out import HeldOutEvaluation

__all__ = [
    "ParetoSearch",
    "add_depth_dimension",
    "candidate_settings",
    "resolve_depth",
    "settings_at_depths",
]

#: So many of the best trials are taken to every depth …
BEST = 4
#: … and these, by their rank among all (in sixteenths): what is second rate at one depth may be
#: the best at another.
SPREAD = (1, 5, 9, 13)
#: The sampler's own dimension: which depth of the ladder.
DEPTH = "front.depth"

PointCallback = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class ParetoSearch:
    """What is needed to look for a front.

    Attributes:
        evaluation: The objective, its split and the rules.
        provenance: What is known of the making of the rerank lists, by name.
        log: Where the values are kept, so that nothing is evaluated twice; None = nowhere.
        told: Called with how many settings are done, and how many there will be.
    """

    evaluation: HeldOutEvaluation
    provenance: Mapping[str, ListMeta] = field(default_factory=dict)
    log: Path | None = None
    on_progress: PointCallback = lambda _done, _total: None

    def __call__(self, result: SearchResult, chosen: Trial) -> model.Front | None:
        """The front of a search.

        Args:
            result: The search on all tuning queries.
            chosen: The trial that was chosen.

        Returns:
            None where none is asked for, or there is no reranker.
        """
        rules, names = self.evaluation.tuning.front, reranker_names(self.evaluation.objective)
        if rules.method == "none" or not names:
            return None
        known = reranker_costs(names, self.evaluation.tuning.effort, self.provenance)
        axes = comparable_axes(list(known.values()))
        archive, interrupted = self._evaluate_points(result, chosen, known, axes)
        return model.Front(
            method=rules.method,
            evaluations=archive.evaluations,
            axes=axes,
            points=front_points(
                self.evaluation, archive.points, axes, result.default_trial, chosen
            ),
            efforts=tuple(one.source for one in known.values()),
            interrupted=interrupted,
        )

    def _evaluate_points(
        self,
        result: SearchResult,
        chosen: Trial,
        known: Mapping[str, RerankerCost],
        axes: Sequence[EffortAxis],
    ) -> tuple[EvaluatedPoints, bool]:
        """Everything that was evaluated, and whether somebody cut it short."""
        tuning = self.evaluation.tuning
        objective = self.evaluation.objective.subset_queries(self.evaluation.split.tune)
        also = [
            max_rerank_depth(objective.build_system(one.params))
            for one in (result.default_trial, chosen)
        ]
        ladder = depth_ladder(objective, tuning.front.depths, also)
        settings = list(
            settings_at_depths(
                objective, candidate_settings(objective, result, chosen), ladder, tuple(known)
            )
        )
        more = 0 if tuning.front.method == "depths" else tuning.front.trials
        log = (
            None
            if self.log is None
            else TrialLog(self.log, search_fingerprint(objective, tuning.search_settings()))
        )
        total = len(settings) + more
        archive = EvaluatedPoints(
            objective, known, log=log, on_progress=lambda done: self.on_progress(done, total)
        )
        for trial in dict.fromkeys((result.default_trial.number, chosen.number)):
            one = next(t for t in result.trials if t.number == trial)
            archive.add_point(one.params, one.value)
        try:
            archive.evaluate_params(settings)
            self._search_with_sampler(archive, objective, ladder, axes, more)
        except KeyboardInterrupt:
            return archive, True
        return archive, False

    def _search_with_sampler(
        self,
        archive: EvaluatedPoints,
        objective: TuningObjective,
        ladder: Sequence[int],
        axes: Sequence[EffortAxis],
        trials: int,
    ) -> None:
        """Search settings and depths together."""
        tuning = self.evaluation.tuning

        def evaluate(asked: Sequence[Params]) -> list[tuple[float, float] | None]:
            found = archive.evaluate_params(
                [resolve_depth(objective, params, ladder) for params in asked]
            )
            return [
                None if one is None else (one.value, effort_on(one.cost, axes[-1])) for one in found
            ]

        search_tradeoffs(
            add_depth_dimension(objective.parameters, ladder),
            evaluate,
            method=tuning.front.method,
            trials=trials,
            batch=tuning.batch,
            seed=tuning.seed,
        )


def candidate_settings(
    objective: TuningObjective, result: SearchResult, chosen: Trial
) -> list[Params]:
    """Settings worth a look at every depth: default, choice, the best, and some of the others."""
    done = sorted((t for t in result.trials if not t.is_failed), key=lambda t: (-t.value, t.number))
    good = [t for t in done if max_rerank_depth(objective.build_system(t.params))]
    picked = [result.default_trial, chosen, *good[:BEST]]
    picked += [good[len(good) * k // 16] for k in SPREAD if good]
    return [one.params for one in {t.number: t for t in picked}.values()]


def settings_at_depths(
    objective: TuningObjective,
    settings: Sequence[Params],
    ladder: Sequence[int],
    names: Sequence[str],
) -> Iterator[Params]:
    """Each setting at each depth with each reranker, no two alike."""
    seen: list[Params] = []
    for params in settings:
        changed = [with_reranker(objective, params, name) for name in names]
        for own in (
            changed if len(names) > 1 and objective.system.by_query_type is None else [params]
        ):
            for depth in ladder:
                found = at_depth(objective, own, depth)
                if found is not None and found not in seen:
                    seen.append(found)
                    yield found


def add_depth_dimension(parameters: Sequence[Parameter], ladder: Sequence[int]) -> list[Parameter]:
    """The space with one depth for all, by its place on the ladder."""
    rest = [one for one in parameters if not is_depth_path(one.path)]
    return [*rest, integer(DEPTH, 0, len(ladder) - 1)]


def resolve_depth(objective: TuningObjective, params: Params, ladder: Sequence[int]) -> Params:
    """What the sampler says, as a setting of the system."""
    own = {path: value for path, value in params.items() if path != DEPTH}
    depth = ladder[int(str(params[DEPTH]))]
    return objective.normalize_weights(at_depth(objective, own, depth) or own)
