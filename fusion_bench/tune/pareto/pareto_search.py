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
from fusion_bench.tune.pareto.evaluated_points import Archive
from fusion_bench.tune.pareto.multi_objective import trade
from fusion_bench.tune.pareto.pareto_report import Axis, axes_of, effort_on, frontier
from fusion_bench.tune.pareto.rerank_cost import Toll, tolls
from fusion_bench.tune.pareto.rerank_depths import (
    at_depth,
    deepest,
    depths,
    is_depth,
    rerankers,
    with_reranker,
)
from fusion_bench.tune.search.search import Study, identity
from fusion_bench.tune.search.trial_log import Log, Trial
from fusion_bench.tune.space.objective import Problem
from fusion_bench.tune.validation.held_out import Judge

__all__ = ["FrontFinder", "everywhere", "pool", "settled", "with_depth"]

#: So many of the best trials are taken to every depth …
BEST = 4
#: … and these, by their rank among all (in sixteenths): what is second rate at one depth may be
#: the best at another.
SPREAD = (1, 5, 9, 13)
#: The sampler's own dimension: which depth of the ladder.
DEPTH = "front.depth"

Told = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class FrontFinder:
    """What is needed to look for a front.

    Attributes:
        judge: The problem, its split and the rules.
        provenance: What is known of the making of the rerank lists, by name.
        log: Where the values are kept, so that nothing is evaluated twice; None = nowhere.
        told: Called with how many settings are done, and how many there will be.
    """

    judge: Judge
    provenance: Mapping[str, ListMeta] = field(default_factory=dict)
    log: Path | None = None
    told: Told = lambda _done, _total: None

    def __call__(self, study: Study, chosen: Trial) -> model.Front | None:
        """The front of a search.

        Args:
            study: The search on all tuning queries.
            chosen: The trial that was chosen.

        Returns:
            None where none is asked for, or there is no reranker.
        """
        rules, names = self.judge.tuning.front, rerankers(self.judge.problem)
        if rules.method == "none" or not names:
            return None
        known = tolls(names, self.judge.tuning.effort, self.provenance)
        axes = axes_of(list(known.values()))
        archive, interrupted = self._archive(study, chosen, known, axes)
        return model.Front(
            method=rules.method,
            evaluations=archive.evaluations,
            axes=axes,
            points=frontier(self.judge, archive.entries, axes, study.default, chosen),
            efforts=tuple(one.source for one in known.values()),
            interrupted=interrupted,
        )

    def _archive(
        self, study: Study, chosen: Trial, known: Mapping[str, Toll], axes: Sequence[Axis]
    ) -> tuple[Archive, bool]:
        """Everything that was evaluated, and whether somebody cut it short."""
        tuning = self.judge.tuning
        problem = self.judge.problem.restricted(self.judge.split.tune)
        also = [deepest(problem.build(one.params)) for one in (study.default, chosen)]
        ladder = depths(problem, tuning.front.depths, also)
        settings = list(everywhere(problem, pool(problem, study, chosen), ladder, tuple(known)))
        more = 0 if tuning.front.method == "depths" else tuning.front.trials
        log = None if self.log is None else Log(self.log, identity(problem, tuning.settings()))
        total = len(settings) + more
        archive = Archive(problem, known, log=log, told=lambda done: self.told(done, total))
        for trial in dict.fromkeys((study.default.number, chosen.number)):
            one = next(t for t in study.trials if t.number == trial)
            archive.add(one.params, one.value)
        try:
            archive.evaluate(settings)
            self._trade(archive, problem, ladder, axes, more)
        except KeyboardInterrupt:
            return archive, True
        return archive, False

    def _trade(
        self,
        archive: Archive,
        problem: Problem,
        ladder: Sequence[int],
        axes: Sequence[Axis],
        trials: int,
    ) -> None:
        """Search settings and depths together."""
        tuning = self.judge.tuning

        def evaluate(asked: Sequence[Params]) -> list[tuple[float, float] | None]:
            found = archive.evaluate([settled(problem, params, ladder) for params in asked])
            return [
                None if one is None else (one.value, effort_on(one.taken, axes[-1]))
                for one in found
            ]

        trade(
            with_depth(problem.parameters, ladder),
            evaluate,
            method=tuning.front.method,
            trials=trials,
            batch=tuning.batch,
            seed=tuning.seed,
        )


def pool(problem: Problem, study: Study, chosen: Trial) -> list[Params]:
    """Settings worth a look at every depth: default, choice, the best, and some of the others."""
    done = sorted((t for t in study.trials if not t.failed), key=lambda t: (-t.value, t.number))
    good = [t for t in done if deepest(problem.build(t.params))]
    picked = [study.default, chosen, *good[:BEST]]
    picked += [good[len(good) * k // 16] for k in SPREAD if good]
    return [one.params for one in {t.number: t for t in picked}.values()]


def everywhere(
    problem: Problem, settings: Sequence[Params], ladder: Sequence[int], names: Sequence[str]
) -> Iterator[Params]:
    """Each setting at each depth with each reranker, no two alike."""
    seen: list[Params] = []
    for params in settings:
        changed = [with_reranker(problem, params, name) for name in names]
        for own in changed if len(names) > 1 and problem.system.by_query_type is None else [params]:
            for depth in ladder:
                found = at_depth(problem, own, depth)
                if found is not None and found not in seen:
                    seen.append(found)
                    yield found


def with_depth(parameters: Sequence[Parameter], ladder: Sequence[int]) -> list[Parameter]:
    """The space with one depth for all, by its place on the ladder."""
    rest = [one for one in parameters if not is_depth(one.path)]
    return [*rest, integer(DEPTH, 0, len(ladder) - 1)]


def settled(problem: Problem, params: Params, ladder: Sequence[int]) -> Params:
    """What the sampler says, as a setting of the system."""
    own = {path: value for path, value in params.items() if path != DEPTH}
    depth = ladder[int(str(params[DEPTH]))]
    return problem.canonical(at_depth(problem, own, depth) or own)
