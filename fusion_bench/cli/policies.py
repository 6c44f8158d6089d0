"""Judge the per-query policies of an experiment."""

from __future__ import annotations

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import print_result
from fusion_bench.config.options import Folder
from fusion_bench.tune.options import StudyLimits


class PolicyOptions(StudyLimits, base.NamedExperimentOptions, base.BriefOptions):
    """Options of ``policies``.

    Attributes:
        systems: System whose policy is judged; repeatable. Default: all that have one.
    """

    systems: base.Systems = ()
    out: Folder | None = None


@base.single_command()
def command(options: PolicyOptions) -> None:
    """Judge each policy against fixed numbers tuned on the same queries with the same budget.

    A policy pays if it is better out of fold (95 % interval above 0), and better than itself with
    its features shuffled across queries (p at most .025). The best variant of each query is the
    ceiling.

    Writes policies.json and policies.md.

    Examples:
        fusion-bench policies experiments/policies.yaml
        fusion-bench policies experiments/policies.yaml --system "margin silencing" --trials 100
        fusion-bench policies experiments/policies.yaml --json
    """
    from fusion_bench.report.policy_page import build_policy_page
    from fusion_bench.report.write import write_record
    from fusion_bench.tune.policy_study import StudyBudget, study_experiment

    with options.open() as (parsed, source, folders, progress):
        folder = base.out_folder(options.out, options.experiment)
        budget = options.call(StudyBudget, seed=parsed.seed)
        study = options.call(
            study_experiment, parsed, source, folders=folders, budget=budget, progress=progress
        )
        page = build_policy_page(study)
        written = write_record("policies", study, page, folder)
    print_result(study, page, options, written)
