"""Check a configuration for regressions against the committed baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import fusion_bench.cli.application.app as base
from fusion_bench.cli.application.console import (
    echo,
    echo_error,
    print_json,
    print_result,
    print_steps,
)
from fusion_bench.cli.application.process import ExitCode, describe_exit_codes

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from fusion_bench.gate.result import GateVerdict
    from fusion_bench.report.page import NextStep, Page

    Context: TypeAlias = AbstractContextManager[base.OpenedExperiment]

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        'fusion-bench gate experiments/mine.yaml --update --reason "first baseline"',
        'fusion-bench gate experiments/mine.yaml --anchor --reason "fewer sources, as agreed"',
        "fusion-bench gate experiments/mine.yaml",
        "fusion-bench gate experiments/mine.yaml --junit gate.xml --markdown gate.md",
        'fusion-bench gate experiments/mine.yaml --markdown - >> "$GITHUB_STEP_SUMMARY"',
        "fusion-bench gate experiments/mine.yaml --self-test",
    )
    + "\n\n"
    + describe_exit_codes(ExitCode.REGRESSION, ExitCode.INCONCLUSIVE),
)
def gate(
    experiment: base.ExperimentFile = base.DEFAULT,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="Baseline file. Default: reports/baselines/EXPERIMENT.json.", metavar="FILE"
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the candidate as the new baseline.")
    ] = False,
    anchor: Annotated[
        bool,
        typer.Option("--anchor", help="The same, and sum up later losses from these values on."),
    ] = False,
    base_commit: Annotated[
        str | None,
        typer.Option(
            "--base",
            help="The commit that the change starts from: the same baseline there is trusted.",
            metavar="COMMIT",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="With --update or --anchor: why the values may change.")
    ] = None,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Measure false alarms, power and false passes.")
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Runs of the self-test. Default: 2000.", min=100, max=100_000, show_default=False
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Other system of the self-test. Default: the experiment's baseline.",
            metavar="NAME",
        ),
    ] = None,
    datasets: base.DatasetFolders = None,
    overrides: base.SetOption = None,
    out: base.OutFolder = None,
    tables: base.TableFormats = None,
    html: base.HtmlFlag = True,
    markdown: base.MarkdownFile = None,
    comment: Annotated[
        Path | None,
        typer.Option(
            help="Write the text of a pull request's comment to FILE: verdict, numbers, bars.",
            metavar="FILE",
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="File for JUnit XML.", metavar="FILE")] = None,
    json: base.JsonFlag = False,
) -> None:
    """Check a configuration for regressions against the committed baseline.

    Writes gate.json, gate.md, gate.html and gate.xml, or the files of the self-test.
    """
    _refuse_combinations(
        {
            "--update": update or anchor,
            "--reason": reason,
            "--set": overrides,
            "--base": base_commit,
            "--self-test": self_test,
            "--runs": runs,
            "--against": against,
            "--markdown": markdown,
            "--junit": junit,
            "--tables": tables,
            "--comment": comment,
        }
    )
    base.refuse_two_outputs(markdown, as_json=json)
    from fusion_bench.cli.application.console import annotated_errors
    from fusion_bench.cli.application.next_steps import after_update
    from fusion_bench.gate.baseline_files import baseline_path

    context = base.experiment_context(experiment, datasets, overrides)
    path = baseline or baseline_path(experiment)
    with annotated_errors(experiment):
        if update or anchor:
            steps = after_update(experiment, path, datasets)
            _update_baseline(context, path, reason or "", steps, anchor=anchor, as_json=json)
            return
        folder = base.out_folder(out, experiment)
        if self_test:
            _run_self_test(context, folder, runs or 2000, against, as_json=json)
        else:
            page, verdict = _run_gate(context, (path, base_commit), datasets, overrides)
            written = _write_outputs(verdict, page, folder, tables or (), html=html)
            written += _write_named(verdict, junit, comment)
            _print_verdict(verdict, page, written, markdown, as_json=json)
            raise typer.Exit(verdict.exit_code)


def _refuse_combinations(options: Mapping[str, Any]) -> None:
    """Refuse options that have no effect together; ``options`` has the value of each by name."""

    def refuse(purpose: str, *names: str) -> None:
        base.refuse_options(purpose, {name: options[name] for name in names})

    is_update, is_self_test = options["--update"], options["--self-test"]
    if is_update and is_self_test:
        raise typer.BadParameter("does not go with --update", param_hint="--self-test")
    if not is_update:
        refuse("a check: it needs --update or --anchor", "--reason")
    if not is_self_test:
        refuse("a check: it needs --self-test", "--runs", "--against")
    if is_update or is_self_test:
        refuse(
            "--update or --self-test", "--markdown", "--junit", "--tables", "--comment", "--base"
        )
    if is_update:
        refuse("--update: a baseline is of a committed file", "--set")
        if not (options["--reason"] or "").strip():
            raise typer.BadParameter("say why the values may change", param_hint="--reason")


def _run_gate(
    context: Context,
    reference: tuple[Path, str | None],
    datasets: Sequence[Path] | None,
    overrides: Sequence[str] | None,
) -> tuple[Page, GateVerdict]:
    """Run the gate, and annotate what did not pass.

    Args:
        context: Opens the experiment.
        reference: File of the baseline, and the commit that the change starts from.
        datasets: Folders of named datasets, as given.
        overrides: Values of ``--set``.
    """
    from fusion_bench.cli.application.console import print_annotations
    from fusion_bench.cli.application.next_steps import after_gate
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.page import build_gate_page
    from fusion_bench.gate.run import run_gate
    from fusion_bench.io.outputs import refuse_inputs

    path, base_commit = reference
    with context as opened:
        refuse_inputs((path,))
        inputs = GateInputs(*opened)
        verdict = run_gate(inputs, path, base_commit)
    print_annotations(verdict, inputs.source, inputs.policy)
    steps = tuple(after_gate(verdict, inputs, path, datasets, overrides or ()))
    return replace(build_gate_page(verdict), next_steps=steps), verdict


def _write_outputs(
    verdict: GateVerdict, page: Page, folder: Path, tables: Sequence[str], *, html: bool
) -> list[Path]:
    from fusion_bench.gate.formats import gate_html, render_junit
    from fusion_bench.report.markdown import render_page
    from fusion_bench.report.table import render_tables
    from fusion_bench.report.write import write_files

    texts = {
        "gate.json": f"{verdict.model_dump_json(indent=1)}\n",
        "gate.md": render_page(page),
        **({"gate.html": gate_html(verdict, page)} if html else {}),
        "gate.xml": render_junit(verdict),
        **render_tables(page, "gate", tables),
    }
    return write_files(folder, texts, committed=[Path(verdict.baseline)])


def _write_named(verdict: GateVerdict, junit: Path | None, comment: Path | None) -> list[Path]:
    """The files that options name."""
    from fusion_bench.gate.formats import render_comment, render_junit
    from fusion_bench.io.outputs import write_output

    named = (("--junit", junit, render_junit), ("--comment", comment, render_comment))
    return [
        write_output(path, render(verdict).encode(), option=option)
        for option, path, render in named
        if path is not None
    ]


def _print_verdict(
    verdict: GateVerdict,
    page: Page,
    written: Sequence[Path],
    markdown: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print a verdict; of a refusal, its reasons as an error instead of the page."""
    if as_json or markdown is not None or not verdict.refusals:
        print_result(verdict, page, as_json=as_json, written=written, markdown=markdown)
    if verdict.refusals:
        echo_error(verdict.headline)
        for step in () if as_json else page.next_steps:
            echo(f"Next: {step.command}  # {step.purpose}", err=True)


def _update_baseline(
    context: Context,
    path: Path,
    reason: str,
    steps: Iterable[NextStep],
    *,
    anchor: bool,
    as_json: bool,
) -> None:
    from fusion_bench.gate.formats import build_update_page
    from fusion_bench.gate.inputs import GateInputs, find_update_warnings, lint_candidate
    from fusion_bench.gate.run import update_baseline
    from fusion_bench.gate.self_test.error_rates import check_power
    from fusion_bench.report.data_warnings import lint_lines, v2_findings

    with context as opened:
        inputs = GateInputs(*opened)
        new = update_baseline(inputs, path, reason, anchor=anchor)
        switch = v2_findings({"the baseline": new.v2_enabled})
        notes = [] if as_json else [*switch, *lint_lines(lint_candidate(inputs))]
        warnings = [] if as_json else [*find_update_warnings(inputs)]
        warnings += [note.text for note in notes if note.tone == "warning"]
        warnings += () if as_json else check_power(inputs)
    last, number = new.history[-1], len(new.history)
    if as_json:
        print_json(last)
        return
    if len(last.reasons) > 1:
        changed = "the anchor alone" if anchor else "nothing"
        echo(f"Written: {path}: {changed} changed; reasons of update {number}: {last.reason}")
        return
    if number > 1:
        print_result(last, build_update_page(new), as_json=False)
    echo(f"Written: {path}: {new.system}, update {number}: {last.reason}")
    if number == 1:
        for collection, means in last.means.items():
            values = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
            echo(f"  {collection}: {values}")
    for warning in warnings:
        echo(f"! {warning}")
    echo("Commit it together with the change.")
    print_steps(steps)


def _run_self_test(
    context: Context, out: Path, runs: int, against: str | None, *, as_json: bool
) -> None:
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.self_test.error_rates import run_self_test
    from fusion_bench.gate.self_test.page import build_self_test_page, write_self_test
    from fusion_bench.util.file_paths import name_experiment

    with context as opened:
        inputs = GateInputs(*opened)
        result = run_self_test(inputs, against=against, runs=runs)
        page = build_self_test_page(result, f"Self-test of {name_experiment(inputs.source.path)}")
        paths = write_self_test(result, page, out)
    print_result(result, page, as_json=as_json, written=paths)
    raise typer.Exit(ExitCode.DONE if result.agrees else ExitCode.REGRESSION)
