"""Later looks of a plan: the frozen numbers, on queries that they were not tuned on."""

from __future__ import annotations

import numpy as np

from fusion_bench.errors import ConfigError
from fusion_bench.tune.looks.digests import query_digests
from fusion_bench.tune.looks.ledger import LookPlan
from fusion_bench.tune.search.search import SearchResult
from fusion_bench.tune.search.trial_log import Trial
from fusion_bench.tune.space.objective import TuningObjective
from fusion_bench.tune.validation.splits import QuerySplit


def frozen_split(objective: TuningObjective, split: QuerySplit, plan: LookPlan) -> QuerySplit:
    """The split of a plan: all queries decide but those of the groups it was tuned on.

    Args:
        objective: What was tuned, on all queries.
        split: As the settings say today; queries in neither part take no part.
        plan: The plan.

    Raises:
        ConfigError: None of the queries that it was tuned on is left.
    """
    runs, tuned_on = objective.runs, set(plan.tuned_on)
    is_tuned = [query_digests([query])[0] in tuned_on for query in runs.queries]
    groups = {group for group, tuned in zip(runs.groups, is_tuned, strict=True) if tuned}
    tune = np.array([group in groups for group in runs.groups], dtype=bool)
    part = split.tune | split.held_out
    if not (tune & part).any():
        raise ConfigError(
            "tune.looks: none of the queries that the plan's numbers were tuned on is left: "
            "restore them, or start another ledger for other queries"
        )
    origin = "numbers frozen by the plan of looks; all queries but those they were tuned on decide"
    return QuerySplit(tune & part, part & ~tune, origin, split.split_seed)


def frozen_trials(
    objective: TuningObjective, split: QuerySplit, plan: LookPlan
) -> tuple[SearchResult, Trial]:
    """The default and the frozen numbers as the only trials, and the latter: nothing is searched.

    Raises:
        ConfigError: The frozen numbers do not fit today's search space.
    """
    known = {parameter.path for parameter in objective.parameters}
    unknown = sorted(set(plan.parameters) - known)
    if unknown:
        raise ConfigError(
            f"tune.looks: the plan froze {unknown[0]}, which is no parameter of "
            f"{objective.system.name} now: restore 'tune.parameters' and the system"
        )
    choices = [objective.default_params, plan.parameters]
    means = objective.subset_queries(split.tune).evaluate_params(choices).mean(axis=1).tolist()
    default, frozen = (dict(params) for params in choices)
    trial = Trial(1, frozen, means[1], "frozen")
    return SearchResult((Trial(0, default, means[0], "default"), trial)), trial
