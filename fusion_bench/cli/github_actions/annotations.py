"""Annotations of GitHub Actions: ``::error file=…,line=…::…`` beside the line of the experiment.

See "Workflow commands for GitHub Actions". They go to standard error, which the runner reads too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fusion_bench.cli.application.errors import locate_error
from fusion_bench.cli.github_actions.log_commands import is_on_github
from fusion_bench.errors import FusionBenchError
from fusion_bench.util.files.real_paths import resolve_path

if TYPE_CHECKING:
    from fusion_bench.config.files.yaml_source import Source
    from fusion_bench.config.models import Location
    from fusion_bench.experiment.gate_settings import GatePolicy
    from fusion_bench.gate.result import GateVerdict

TITLE = "fusion-bench gate"


@contextmanager
def annotated_errors(experiment: Path) -> Iterator[None]:
    """Annotate the error that ends the context, on GitHub."""
    try:
        yield
    except FusionBenchError as error:
        if is_on_github():
            file, line, message = locate_error(str(error))
            path = experiment if file is None else Path(file)
            typer.echo(format_annotation("error", path, line, message), err=True)
        raise


def print_annotations(verdict: GateVerdict, source: Source, policy: GatePolicy) -> None:
    """Print one line for whatever did not pass, on GitHub.

    Args:
        verdict: Of the gate.
        source: The experiment's file with its lines.
        policy: The policy that the verdict is of.
    """
    if is_on_github():
        for level, location, message in list_problems(verdict, policy):
            line = _find_line(source, location)
            typer.echo(format_annotation(level, source.path, line, message), err=True)


def list_problems(verdict: GateVerdict, policy: GatePolicy) -> Iterator[tuple[str, Location, str]]:
    """Level, path in the experiment and text of whatever did not pass."""
    from fusion_bench.gate.pages.check_texts import (
        describe_check,
        describe_query_check,
    )
    from fusion_bench.gate.verdict import ACCEPTED

    for refusal in verdict.refusals:
        yield "error", ("gate",), refusal
    if not verdict.is_reproduced:
        yield "error", ("gate",), verdict.headline
    # The checks of one collection follow each other in the order of the policy.
    keys = [key for key in policy.checks for _ in policy.slices_of(key)]
    for i, check in enumerate(verdict.checks):
        is_error = check.error is not None or check.status in verdict.blocking
        if is_error or check.status not in ACCEPTED:
            level = "error" if is_error else "warning"
            text = f"{check.name}: {check.stated_status}: {describe_check(check, verdict)}"
            yield level, ("gate", "checks", keys[i % len(keys)]), text
    collections = len(verdict.guards) // max(1, len(policy.guards))
    for i, guard in enumerate(verdict.guards):
        if not guard.holds:
            text = f"{guard.collection}: {describe_query_check(guard)}"
            yield "error", ("gate", "guards", i // collections), text
    for i, golden in enumerate(verdict.golden):
        if not golden.holds:
            yield "error", ("gate", "golden", i), describe_query_check(golden)


def _find_line(source: Source, location: Location) -> int | None:
    """The line of a value, or of the nearest key above it; checks may stand in the short form."""
    short = ("gate", *location[2:]) if location[:2] == ("gate", "checks") else location
    for path in (location, short, location[:2], location[:1]):
        if path in source.lines:
            return source.lines[path]
    return None


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
    properties = {"file": file.as_posix(), "line": line, "title": TITLE}
    listed = ",".join(
        f"{name}={_escape_property(str(value))}"
        for name, value in properties.items()
        if value is not None
    )
    return f"::{level} {listed}::{_escape_message(message)}"


def _escape_message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")
