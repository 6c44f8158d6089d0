"""Compare every fusion method on collections of your own; join and check such results.

Examples:
    fusion-bench leaderboard datasets/mine --out reports/leaderboard
    fusion-bench leaderboard mine other --methods core --jobs 2 --out reports/leaderboard
    fusion-bench leaderboard merge a/leaderboard.json b/leaderboard.json --out both
    fusion-bench leaderboard verify a/leaderboard.json mine
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, echo_written, print_json
from fusion_bench.config.options import Argument, Count, Folder, Option
from fusion_bench.leaderboard.records import Leaderboard, TuningBudget, merge, read_leaderboard
from fusion_bench.leaderboard.rows import Methods
from fusion_bench.util.files import make_output_folder

#: The subcommand that stands for none.
RUN = "run"


class DefaultGroup(TyperGroup):
    """A group whose subcommand ``run`` needs no name."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - vendored types
        """Put ``run`` before what names no subcommand."""
        is_named = not args or args[0] in self.commands or args[0] in {"-h", "--help"}
        return super().parse_args(ctx, args if is_named else [RUN, *args])


command = base.command_group(__doc__, cls=DefaultGroup)


class RunOptions(base.DatasetOptions):
    """Options of ``leaderboard``.

    Attributes:
        collections: Names, folders or dataset.yaml files, each with two lists or more.
        methods: All registered methods and engines; or core: rrf, rrf_v2, isr, log_isr,
            rbc, borda, condorcet, convex, dbsf, comb_sum, comb_mnz and softmax_rrf.
        trials: Random settings of each tuned row.
        jobs: Processes.
        clusters: Collections that resemble each other count as one effect: A,B,C; repeatable.
        out: Folder of the results; what it holds is not computed again.
    """

    collections: Annotated[Sequence[str], Argument("DATASET...")]
    methods: Methods = "all"
    trials: Annotated[int, Option(min=2)] = 50
    jobs: Count = 1
    clusters: Annotated[Sequence[str], Option("--alike", metavar="A,B,C")] = ()
    out: Folder


@base.add_command(command, name=RUN)
def run_command(options: RunOptions) -> None:
    """Evaluate, tune out of fold and compare every method; write the page and its cells.

    Writes leaderboard.md, its tables and pictures, and leaderboard.json with the values of every
    query and no text or id. A run that was stopped continues where it was.

    Examples:
        fusion-bench leaderboard datasets/mine --out reports/leaderboard
        fusion-bench leaderboard mine other --methods core --jobs 2 --out reports/leaderboard
    """
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.io.outputs import refuse_inputs
    from fusion_bench.leaderboard.evaluate import run_collections
    from fusion_bench.leaderboard.results import collect_cells

    paths = [options.find(name) for name in options.collections]
    refuse_inputs(paths)
    cells = make_output_folder(options.out) / "cells"
    with progress_bar() as progress:
        budget = TuningBudget(trials=options.trials)
        counts = options.call(run_collections, paths, cells, budget, progress=progress)
    clusters = {name: cluster for cluster in options.clusters for name in cluster.split(",")}
    _write(options, options.out, collect_cells(cells, clusters), counts)


def _write(
    options: base.JsonOptions, folder: Path, leaderboard: Leaderboard, counts: Mapping[str, int]
) -> None:
    from fusion_bench.io.outputs import write_outputs
    from fusion_bench.leaderboard.page import render_pages

    written = write_outputs(make_output_folder(folder), render_pages(leaderboard))
    if options.json:
        print_json({"rows": dict(counts), "files": [str(path) for path in written]})
        return
    echo(", ".join(f"{count} rows {word}" for word, count in sorted(counts.items())))
    echo_written(written)


class MergeOptions(base.JsonOptions):
    """Options of ``leaderboard merge``.

    Attributes:
        files: Two or more leaderboard.json.
        out: Folder of the joined results.
    """

    files: Annotated[Sequence[Path], Argument("LEADERBOARD...")]
    out: Folder


@base.add_command(command, name="merge")
def merge_command(options: MergeOptions) -> None:
    """Join results of others, after checking the digest of every cell.

    Refuses results of another version, and a cell that two files have with different values.

    Examples:
        fusion-bench leaderboard merge a/leaderboard.json b/leaderboard.json --out both
    """
    from fusion_bench.io.outputs import refuse_inputs

    refuse_inputs(options.files)
    leaderboard = merge(options.files)
    counts = {"joined": sum(len(each.cells) for each in leaderboard.collections)}
    _write(options, options.out, leaderboard, counts)


class VerifyOptions(base.DatasetOptions):
    """Options of ``leaderboard verify``.

    Attributes:
        file: A leaderboard.json.
        dataset: The dataset of one of its collections.
        seed: Chooses the cells.
    """

    file: Annotated[Path, Argument("LEADERBOARD")]
    dataset: Annotated[str, Argument("DATASET")]
    seed: Annotated[int, Option(min=0)] = 0


@base.add_command(command, name="verify")
def verify_command(options: VerifyOptions) -> None:
    """Compute 20 random cells again; exit with 1 where a value differs by more than 1e-12.

    Examples:
        fusion-bench leaderboard verify a/leaderboard.json mine
    """
    from fusion_bench.leaderboard.evaluate import TOLERANCE, verify

    cells = verify(read_leaderboard(options.file), options.find(options.dataset), seed=options.seed)
    wrong = {name: size for name, size in cells.items() if not size <= TOLERANCE}  # NaN is wrong
    if options.json:
        rows = [{"name": name, "difference": size} for name, size in cells.items()]
        print_json({"cells": rows, "is_equal": not wrong})
    else:
        echo(f"{len(cells) - len(wrong)} of {len(cells)} cells are equal within 1e-12")
        for name, size in wrong.items():
            echo(f"{name}: differs by up to {size:.3g}")
    if wrong:
        raise typer.Exit(1)
