"""Hold a changed configuration to the committed baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fusion_bench.cli._base import (
    DEFAULT,
    DatasetFolders,
    ExperimentFile,
    JsonFlag,
    OutFolder,
    command_app,
    experiment_context,
    format_examples,
    make_console,
    out_folder,
)
from fusion_bench.cli._console import echo, echo_error, echo_written

if TYPE_CHECKING:
    from fusion_bench.gate import GateVerdict

__all__ = ["command", "gate"]


command = command_app()


@command.command(
    epilog=format_examples(
        'fusion-bench gate experiments/mine.yaml --update --reason "first baseline"',
        "fusion-bench gate experiments/mine.yaml",
        "fusion-bench gate experiments/mine.yaml --junit gate.xml --markdown gate.md",
        'fusion-bench gate experiments/mine.yaml --markdown - >> "$GITHUB_STEP_SUMMARY"',
        "fusion-bench gate experiments/mine.yaml --self-test",
    ),
)
def gate(
    experiment: ExperimentFile = DEFAULT,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="The baseline. Default: reports/baselines/EXPERIMENT.json.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the candidate as the new baseline.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="With --update: why the numbers may change.")
    ] = None,
    self_test: Annotated[
        bool,
        typer.Option("--self-test", help="Measure false alarms, detection and false passes."),
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Of the self-test. Default: 2000.", min=100, max=100_000, show_default=False
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Of the self-test: the other system. Default: the experiment's baseline.",
            metavar="NAME",
        ),
    ] = None,
    datasets: DatasetFolders = None,
    out: OutFolder = None,
    markdown: Annotated[
        Path | None, typer.Option(help="File for Markdown; - prints it.", metavar="FILE")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="File for JUnit XML.", metavar="FILE")] = None,
    json: JsonFlag = False,
) -> None:
    """Hold a changed configuration to the committed baseline.

    Writes gate.json, gate.md and gate.xml, or the self-test's report.

    Exit codes: 0 passed, 1 a regression, 2 could not be compared, 3 inconclusive and the policy
    blocks. A self-test ends with 1 where a promise is broken.
    """
    chosen = {"--update": update, "--self-test": self_test}
    if update and self_test:
        raise typer.BadParameter("does not go with --update", param_hint="--self-test")
    _only_with("--update", reason=reason, given=update)
    _only_with("--self-test", runs=runs, against=against, given=self_test)
    for option, value in {"--markdown": markdown, "--junit": junit}.items():
        if value is not None and any(chosen.values()):
            raise typer.BadParameter("goes with a verdict only", param_hint=option)
    if update:
        _update(experiment, baseline, reason, datasets, json=json)
    elif self_test:
        _self_test(experiment, datasets, runs or 2000, against, out, json=json)
    else:
        _gate(experiment, baseline, datasets, (out, markdown, junit), json=json)


def _only_with(option: str, *, given: bool, **others: object) -> None:
    for name, value in others.items():
        if value is not None and not given:
            raise typer.BadParameter(f"goes with {option} only", param_hint=f"--{name}")


def _gate(
    experiment: Path,
    baseline: Path | None,
    datasets: list[Path] | None,
    places: tuple[Path | None, Path | None, Path | None],
    *,
    json: bool,
) -> None:
    from fusion_bench.cli._gate_output import render
    from fusion_bench.gate import baseline_path, run_gate

    out, markdown, junit = places
    with experiment_context(experiment, datasets) as (parsed, source, how):
        folder = out_folder(out, experiment)
        result = run_gate(parsed, source, baseline=baseline or baseline_path(experiment), **how)
    printed = _write(result, folder, markdown, junit)
    if json:
        typer.echo(result.model_dump_json())
    elif not printed and not result.refusals:
        render(result, make_console())
    if result.refusals:
        echo_error(result.headline)
    raise typer.Exit(result.exit_code)


def _write(result: GateVerdict, out: Path, markdown: Path | None, junit: Path | None) -> bool:
    """Write every form of the decision; whether Markdown took the place of the table."""
    from fusion_bench.gate import report as render
    from fusion_bench.gate.junit import render_junit as as_junit
    from fusion_bench.util.atomic_files import write_atomic

    page = render.markdown(result)
    printed = markdown == Path("-")
    if printed:
        typer.echo(page, nl=False)
    files = {
        None if printed else markdown: page,
        junit: as_junit(result),
        out / "gate.md": page,
        out / "gate.xml": as_junit(result),
        out / "gate.json": result.model_dump_json(indent=1) + "\n",
    }
    for path, text in files.items():
        if path is not None:
            write_atomic(path, text.encode())
    return printed


def _update(
    experiment: Path,
    baseline: Path | None,
    reason: str | None,
    datasets: list[Path] | None,
    *,
    json: bool,
) -> None:
    from fusion_bench.gate import baseline_path, update_baseline
    from fusion_bench.gate.power_check import check_power

    if reason is None or not reason.strip():
        raise typer.BadParameter("say why the numbers may change", param_hint="--reason")
    path = baseline or baseline_path(experiment)
    with experiment_context(experiment, datasets) as (parsed, source, how):
        written = update_baseline(parsed, source, baseline=path, reason=reason, **how)
        warnings = () if json else check_power(parsed, source, **how)
    last = written.history[-1]
    if json:
        typer.echo(last.model_dump_json())
        return
    echo(f"Written: {path}: {written.system}, update {len(written.history)}: {last.reason}")
    for collection, means in last.means.items():
        values = ", ".join(f"{name} {mean:.4f}" for name, mean in means.items())
        echo(f"  {collection}: {values}")
    for warning in warnings:
        echo(f"! {warning}")
    echo("Commit it together with the change.")


def _self_test(
    experiment: Path,
    datasets: list[Path] | None,
    runs: int,
    against: str | None,
    out: Path | None,
    *,
    json: bool,
) -> None:
    from fusion_bench.cli._gate_output import render_self_test
    from fusion_bench.gate.self_test.page import page, picture, plain
    from fusion_bench.gate.self_test.run import run_self_test
    from fusion_bench.util.atomic_files import write_atomic

    with experiment_context(experiment, datasets) as (parsed, source, how):
        folder = out_folder(out, experiment)
        found, systems, checks = run_self_test(parsed, source, against=against, runs=runs, **how)
        max_drops = {check.name: check.max_drop for check in checks}
        files = {
            "self-test.json": plain(found, systems).encode(),
            "self-test.md": page(found, f"Self-test of {experiment.stem}", systems).encode(),
            "self-test.png": picture(found, max_drops),
        }
        written = [write_atomic(folder / name, data) for name, data in files.items()]
    if json:
        typer.echo(plain(found, systems), nl=False)
    else:
        render_self_test(found, systems, make_console())
        echo_written(written)
    raise typer.Exit(0 if found.agrees else 1)
