"""Which variant of a system its policy picks for each query."""

from __future__ import annotations

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray, make_readonly
from fusion_bench.data.view_cache import cached_by_view
from fusion_bench.errors import ConfigError
from fusion_bench.evaluation.ranking.system_ranking import fused_list
from fusion_bench.experiment.system import System
from fusion_bench.policies import Choice, QueryFeatures

#: Views of the queries with one choice that a view remembers.
PARTS_KEPT = 128


def query_features(system: System, runs: AlignedRuns) -> QueryFeatures:
    """What the policy of a system may look at.

    Args:
        system: A system with a policy.
        runs: All sources of the dataset.
    """
    names = system.runs
    depth = system.depth if isinstance(system.depth, dict) else dict.fromkeys(names, system.depth)
    view = runs.restrict(names, depth)
    weights = system.fusion.source_weights(view.sources, view.roles)

    def fuse() -> tuple[FloatArray, IntArray, IntArray]:
        active = system.active_runs(runs)
        fused = fused_list(active, system.fusion)
        return fused.scores, fused.positions, active.offsets

    return QueryFeatures(runs=view, weights=weights, fuse=fuse)


def choose_variants(system: System, runs: AlignedRuns) -> Choice:
    """The variant that the system's policy picks for each query.

    Raises:
        AlignmentError: A feature that the policy reads is not known of a query, or it is trained
            and not fitted.
        ConfigError: The system has no policy, or the sources do not fit it.
    """
    if system.policy is None:
        raise ConfigError(f"system {system.name!r} has no policy")
    choice = system.policy.choose(query_features(system, runs))
    make_readonly(choice.codes)
    return choice


def runs_of_choice(runs: AlignedRuns, keep: BoolArray) -> AlignedRuns:
    """Only the queries where ``keep``, (Q,), is true; the runs themselves where all are."""
    return runs if keep.all() else _subset(runs, keep)


@cached_by_view(keep=PARTS_KEPT, key=lambda keep: keep.tobytes())
def _subset(runs: AlignedRuns, keep: BoolArray) -> AlignedRuns:
    return runs.subset(keep)
