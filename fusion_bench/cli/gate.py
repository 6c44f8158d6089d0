"""Check a configuration for regressions against the committed baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

import fusion_bench.cli._base as base
from fusion_bench.cli._console import echo, echo_error, print_json, print_result

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    Context: TypeAlias = AbstractContextManager[base.OpenedExperiment]

#: The file name that stands for standard output.
STDOUT = Path("-")

command = base.command_app()


@command.command(
    epilog=base.format_examples(
        'fusion-bench gate experiments/mine.yaml --update --reason "first baseline"',
        "fusion-bench gate experiments/mine.yaml",
        "fusion-bench gate experiments/mine.yaml --junit gate.xml --markdown gate.md",
        'fusion-bench gate experiments/mine.yaml --markdown - >> "$GITHUB_STEP_SUMMARY"',
        "fusion-bench gate experiments/mine.yaml --self-test",
    ),
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
    reason: Annotated[
        str | None, typer.Option(help="With --update: why the values may change.")
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
    out: base.OutFolder = None,
    markdown: Annotated[
        Path | None, typer.Option(help="File for Markdown; - prints it.", metavar="FILE")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="File for JUnit XML.", metavar="FILE")] = None,
    json: base.JsonFlag = False,
) -> None:
    """Check a configuration for regressions against the committed baseline.

    Writes gate.json, gate.md and gate.xml, or the files of the self-test.

    Exit codes: 0 passed, 1 regression, 2 not checked, 3 inconclusive and the policy blocks. The
    self-test exits with 1 where an error rate disagrees with the stated one.
    """
    if update and self_test:
        raise typer.BadParameter("does not go with --update", param_hint="--self-test")
    if not update:
        base.refuse_options("a check: it needs --update", {"--reason": reason})
    if not self_test:
        base.refuse_options("a check: it needs --self-test", {"--runs": runs, "--against": against})
    if update or self_test:
        base.refuse_options("--update or --self-test", {"--markdown": markdown, "--junit": junit})
    if update and not (reason or "").strip():
        raise typer.BadParameter("say why the values may change", param_hint="--reason")
    from fusion_bench.gate.baseline import baseline_path

    context = base.experiment_context(experiment, datasets)
    path = baseline or baseline_path(experiment)
    if update:
        _update_baseline(context, path, reason or "", as_json=json)
        return
    folder = base.out_folder(out, experiment)
    if self_test:
        _run_self_test(context, folder, runs or 2000, against, as_json=json)
    else:
        _run_gate(context, path, folder, markdown, junit, as_json=json)


def _run_gate(
    context: Context,
    path: Path,
    out: Path,
    markdown: Path | None,
    junit: Path | None,
    *,
    as_json: bool,
) -> None:
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.junit import render_junit
    from fusion_bench.gate.report import build_gate_page
    from fusion_bench.gate.run import run_gate
    from fusion_bench.report.markdown import render_page
    from fusion_bench.util.atomic_files import write_atomic

    with context as opened:
        verdict = run_gate(GateInputs(*opened), path)
    page = build_gate_page(verdict)
    text, xml = render_page(page), render_junit(verdict)
    record = f"{verdict.model_dump_json(indent=1)}\n"
    files = {out / "gate.json": record, out / "gate.md": text, out / "gate.xml": xml}
    is_printed = markdown == STDOUT
    if is_printed:
        typer.echo(text, nl=False)
    elif markdown is not None:
        files[markdown] = text
    if junit is not None:
        files[junit] = xml
    for file, content in files.items():
        write_atomic(file, content.encode())
    if as_json or not (is_printed or verdict.refusals):
        print_result(verdict, page, as_json=as_json)
    if verdict.refusals:
        echo_error(verdict.headline)
    raise typer.Exit(verdict.exit_code)


def _update_baseline(context: Context, path: Path, reason: str, *, as_json: bool) -> None:
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.run import update_baseline
    from fusion_bench.gate.self_test.run import check_power

    with context as opened:
        inputs = GateInputs(*opened)
        new = update_baseline(inputs, path, reason)
        warnings = () if as_json else check_power(inputs)
    last = new.history[-1]
    if as_json:
        print_json(last)
        return
    echo(f"Written: {path}: {new.system}, update {len(new.history)}: {last.reason}")
    for collection, means in last.means.items():
        values = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
        echo(f"  {collection}: {values}")
    for warning in warnings:
        echo(f"! {warning}")
    echo("Commit it together with the change.")


def _run_self_test(
    context: Context, out: Path, runs: int, against: str | None, *, as_json: bool
) -> None:
    from fusion_bench.gate.inputs import GateInputs
    from fusion_bench.gate.self_test.page import build_self_test_page, write_self_test
    from fusion_bench.gate.self_test.run import run_self_test

    with context as opened:
        inputs = GateInputs(*opened)
        result = run_self_test(inputs, against=against, runs=runs)
        page = build_self_test_page(result, f"Self-test of {inputs.source.path.stem}")
        paths = write_self_test(result, page, out)
    print_result(result, page, as_json=as_json, written=paths)
    raise typer.Exit(0 if result.agrees else 1)
