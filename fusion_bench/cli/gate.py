"""Check a configuration for regressions against the committed baseline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import console
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.options import CheckOptions, File, Folder, Name, Option, PageFileOptions
from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files import baseline_path, name_experiment, resolve_path

if TYPE_CHECKING:
    from fusion_bench.config.models import Location
    from fusion_bench.config.yaml_files import Source
    from fusion_bench.experiment.settings import GatePolicy
    from fusion_bench.gate.baseline import Baseline
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.result import GateVerdict


class GateOptions(base.ExperimentOptions, CheckOptions, PageFileOptions, base.PageOptions):
    """Options of ``gate``.

    Attributes:
        csv: Also write the records behind the page as CSV.
        baseline: Baseline file. Default: reports/baselines/EXPERIMENT.json.
        update: Write the candidate as the new baseline.
        anchor: The same, and sum up later losses from these values on.
        commit: The commit that the change starts from: the same baseline there is trusted.
        reason: With --update or --anchor: why the values may change.
        self_test: Try the gate where the right answer is known.
        runs: Simulated runs of the self-test. Default: 200.
        against: Other system of the self-test. Default: the experiment's baseline.
        comment: Write the text of a pull request's comment to FILE: verdict, numbers, bars.
        junit: File for JUnit XML.
    """

    csv: Annotated[Literal["tables"], Option(metavar="")] | None = None
    baseline: Annotated[File, Option("--baseline-file")] | None = None
    update: bool = False
    anchor: bool = False
    commit: Annotated[str, Option("--base", metavar="COMMIT")] | None = None
    reason: str | None = None
    self_test: bool = False
    runs: Annotated[int, Option("--simulations", metavar="N", min=100, max=100_000)] | None = None
    against: Annotated[Name, Option("--other-system")] | None = None
    out: Folder | None = None
    comment: File | None = None
    junit: File | None = None

    def known_plugins(self) -> frozenset[str] | None:
        """Those that the baseline names; any where it is written, or the self-test runs."""
        from fusion_bench.gate.baseline_files import list_plugins, read_baseline

        if self.is_update or self.self_test:
            return None
        path = self.baseline or baseline_path(self.experiment)
        return list_plugins(read_baseline(path, self.experiment))

    @property
    def is_update(self) -> bool:
        """Whether a baseline is written."""
        return self.update or self.anchor

    def check(self) -> None:
        """Refuse options that have no effect together.

        Raises:
            typer.BadParameter: Two do not go together, or an update has no reason.
        """
        if self.is_update:
            base.refuse(self, "does not go with --update", "self_test")
        else:
            base.refuse(self, "does not go with a check: it needs --update or --anchor", "reason")
        if not self.self_test:
            needed = "does not go with a check: it needs --self-test"
            base.refuse(self, needed, "runs", "against")
        if self.is_update or self.self_test:
            of_checks = ("markdown", "junit", "latex", "csv", "comment", "commit")
            base.refuse(self, "does not go with --update or --self-test", *of_checks)
        if self.is_update:
            committed = "does not go with --update: a baseline is of a committed file"
            base.refuse(self, committed, "overrides")
            if not (self.reason or "").strip():
                raise typer.BadParameter("explain why the values may change", param_hint="--reason")


@base.single_command(ExitCode.REGRESSION, ExitCode.INCONCLUSIVE)
def command(options: GateOptions) -> None:
    """Check a configuration for regressions against the committed baseline.

    Writes gate.json, gate.md, gate.html and gate.xml, or the files of the self-test.

    Examples:
        fusion-bench gate experiments/mine.yaml --update --reason "first baseline"
        fusion-bench gate experiments/mine.yaml --anchor --reason "fewer sources, as agreed"
        fusion-bench gate experiments/mine.yaml
        fusion-bench gate experiments/mine.yaml --junit gate.xml --markdown gate.md
        fusion-bench gate experiments/mine.yaml --markdown - >> "$GITHUB_STEP_SUMMARY"
        fusion-bench gate experiments/mine.yaml --self-test
    """
    options.check()
    path = options.baseline or baseline_path(options.experiment)
    with _annotated_errors(options.experiment):
        if options.is_update:
            _update_baseline(options, path)
            return
        folder = base.out_folder(options.out, options.experiment)
        if options.self_test:
            _run_self_test(options, folder)
        else:
            _run_gate(options, path, folder)


def _run_gate(options: GateOptions, path: Path, folder: Path) -> None:
    """Check the candidate, annotate what did not pass, and write and print the verdict.

    A refusal prints its reasons as an error instead of the page.

    Args:
        options: The options of the command.
        path: The file of the baseline.
        folder: The folder of the outputs; options may name further files.

    Raises:
        typer.Exit: Always, with the exit code of the verdict.
    """
    from fusion_bench.cli.application.next_steps import after_gate
    from fusion_bench.gate.formats import gate_html, render_comment, render_junit
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.page import build_gate_page
    from fusion_bench.gate.run import run_gate
    from fusion_bench.io.outputs import refuse_inputs, write_files, write_output
    from fusion_bench.report.latex import render_latex_tables
    from fusion_bench.report.markdown import render_page
    from fusion_bench.report.record_rows import csv_files, record_rows

    with options.open() as opened:
        refuse_inputs((path,))
        inputs = GateInputs(*opened, options.allowed)
        verdict = run_gate(inputs, path, options.commit)
    _print_annotations(verdict, inputs.source, inputs.policy)
    steps = tuple(after_gate(verdict, inputs, path, options))
    page = replace(build_gate_page(verdict), next_steps=steps)
    texts = {
        "gate.json": f"{verdict.model_dump_json(indent=1)}\n",
        "gate.md": render_page(page),
        **({"gate.html": gate_html(verdict, page)} if options.html else {}),
        "gate.xml": render_junit(verdict),
        **(render_latex_tables(page, "gate") if options.latex else {}),
        **csv_files("gate", record_rows(verdict), options.csv),
    }
    written = write_files(folder, texts, committed=[Path(verdict.baseline)])
    renderers = {"--junit": render_junit, "--comment": render_comment}
    for option, file in options.given("comment", "junit").items():
        text = renderers[option](verdict)
        written.append(write_output(file, text.encode(), option=option))
    if options.json or options.markdown is not None or not verdict.refusals:
        console.print_result(verdict, page, options, written)
    if verdict.refusals:
        console.echo_error(verdict.headline)
        for step in () if options.json else page.next_steps:
            console.echo(f"Next: {step.command}  # {step.purpose}", err=True)
    raise typer.Exit(verdict.exit_code)


def _update_baseline(options: GateOptions, path: Path) -> None:
    """Write the candidate as the baseline, and print what the update changed."""
    from fusion_bench.gate.baseline_files import gate_command
    from fusion_bench.gate.formats import build_update_page
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.update import update_baseline
    from fusion_bench.measures.aliases import display_measure
    from fusion_bench.report.page import NextStep
    from fusion_bench.report.terminal import print_next_steps

    with options.open() as opened:
        inputs = GateInputs(*opened, options.allowed)
        new = update_baseline(inputs, path, options.reason or "", anchor=options.anchor)
        warnings = [] if options.json else _list_update_warnings(inputs, new)
    last, number = new.history[-1], len(new.history)
    if options.json:
        console.print_json(last)
    elif len(last.reasons) > 1:
        changed = "the anchor alone" if options.anchor else "nothing"
        console.echo(
            f"Written: {path}: {changed} changed; reasons of update {number}: {last.reason}"
        )
    else:
        if number > 1:
            # No file has this page, and no second update prints it.
            whole = replace(options, verbose=not options.quiet)
            console.print_result(last, build_update_page(new), whole)
        console.echo(f"Written: {path}: {new.system}, update {number}: {last.reason}")
        for drop in new.max_drops:
            console.echo(f"  max_drop: auto: {drop.description}")
        if number == 1:
            for collection, means in last.means.items():
                values = ", ".join(f"{display_measure(m)} {mean:.4f}" for m, mean in means.items())
                console.echo(f"  {collection}: {values}")
        for warning in warnings:
            console.echo(f"! {warning}")
        console.echo("Commit it together with the change.")
        check = gate_command(options.experiment, path, options.datasets)
        terminal = console.make_console()
        terminal.print()
        print_next_steps([NextStep(check, "check later changes against it")], terminal)


def _list_update_warnings(inputs: GateInputs, new: Baseline) -> list[str]:
    from fusion_bench.checks.collection_warnings import warn_v2
    from fusion_bench.gate.inputs import find_update_warnings, lint_candidate
    from fusion_bench.gate.tolerances import warn_of_low_limits
    from fusion_bench.report.data_warnings import lint_lines

    texts = [each.text for each in warn_v2({"the baseline": new.v2_enabled})]
    lines = lint_lines(lint_candidate(inputs))
    texts += [line.text for line in lines if line.tone == "warning"]
    texts += inputs.policy.ended_keys
    return [*find_update_warnings(inputs), *texts, *warn_of_low_limits(inputs, new)]


def _run_self_test(options: GateOptions, out: Path) -> None:
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.self_test import build_self_test_page, run_self_test, write_self_test

    with options.open() as opened:
        inputs = GateInputs(*opened, options.allowed)
        result = run_self_test(inputs, against=options.against, runs=options.runs or 200)
        page = build_self_test_page(result, f"Self-test of {name_experiment(inputs.source.path)}")
        paths = write_self_test(result, page, out)
    console.print_result(result, page, options, paths)
    raise typer.Exit(ExitCode.DONE if result.agrees else ExitCode.REGRESSION)


@contextmanager
def _annotated_errors(experiment: Path) -> Iterator[None]:
    """Annotate the error that ends the context, on GitHub."""
    try:
        yield
    except FusionBenchError as error:
        if console.is_on_github():
            file, line, message = console.locate_error(str(error))
            path = experiment if file is None else Path(file)
            typer.echo(format_annotation("error", path, line, message), err=True)
        raise


def _print_annotations(verdict: GateVerdict, source: Source, policy: GatePolicy) -> None:
    """Print one line for whatever did not pass, on GitHub.

    See "Workflow commands for GitHub Actions". The runner reads standard error, too.
    """
    if console.is_on_github():
        for level, location, message in _list_problems(verdict, policy):
            # A check may be written in the short form; else the nearest key above it is named.
            short = ("gate", *location[2:]) if location[:2] == ("gate", "checks") else location
            places = (location, short, location[:2], location[:1])
            line = next((source.lines[place] for place in places if place in source.lines), None)
            typer.echo(format_annotation(level, source.path, line, message), err=True)


def _list_problems(verdict: GateVerdict, policy: GatePolicy) -> Iterator[tuple[str, Location, str]]:
    """Level, path in the experiment and text of whatever did not pass."""
    from fusion_bench.gate.page import describe_check, describe_query_check
    from fusion_bench.gate.verdict import ACCEPTED, FALSE_ANSWERS

    for refusal in verdict.refusals:
        yield "error", ("gate",), refusal
    if not verdict.is_reproduced:
        yield "error", ("gate",), verdict.headline
    # The checks of one collection follow each other in the order of the policy.
    keys = [key for key in policy.tolerances for _ in policy.slices_of(key)]
    for i, check in enumerate(verdict.checks):
        is_error = check.error is not None or check.status in verdict.blocking
        if is_error or check.status not in ACCEPTED:
            level = "error" if is_error else "warning"
            text = f"{check.display_name}: {check.stated_status}: {describe_check(check, verdict)}"
            yield level, ("gate", "checks", keys[i % len(keys)]), text
    for each in verdict.unshown_answers:
        level = "error" if each.status in verdict.blocking else "warning"
        yield level, ("gate", "checks", FALSE_ANSWERS), each.statement
    collections = len(verdict.guards) // max(1, len(policy.guards))
    guards = [(i, guard) for i, guard in enumerate(verdict.guards) if not guard.holds]
    for i, guard in guards:
        text = f"{guard.collection}: {describe_query_check(guard)}"
        yield "error", ("gate", "guards", i // collections), text
    for i, golden in enumerate(verdict.golden):
        if not golden.holds:
            yield "error", ("gate", "golden", i), describe_query_check(golden)


def format_annotation(level: str, file: Path, line: int | None, message: str) -> str:
    """One workflow command, escaped as GitHub demands.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        file: The file; below the workspace it is named from there.
        line: Its line, from 1.
        message: What is wrong.
    """
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if workspace and resolve_path(file).is_relative_to(resolve_path(Path(workspace))):
        file = resolve_path(file).relative_to(resolve_path(Path(workspace)))
    properties = {"file": file.as_posix(), "line": line, "title": "fusion-bench gate"}
    listed = ",".join(
        f"{name}={_escape_message(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
        if value is not None
    )
    return f"::{level} {listed}::{_escape_message(message)}"


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
