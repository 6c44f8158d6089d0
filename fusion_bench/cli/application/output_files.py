"""Options that name a file to write: no command replaces what it did not write, without --force."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

#: Options of all commands that name a file or a folder to write.
OUTPUTS: Final = frozenset(
    {
        *("--out", "--save", "--save-vectors", "--save-passages", "--records", "--plot"),
        *("--markdown", "--comment", "--junit", "--export", "--write-qrels", "--write-groups"),
    }
)
#: Those whose commands decide which files are their own.
OWNED: Final = frozenset({"--export", "--write-qrels", "--write-groups"})
#: Stands for standard output.
STDOUT: Final = Path("-")

_template = typer.Typer(add_completion=False)


@_template.command()
def _force_option(
    force: Annotated[
        bool, typer.Option("--force", help="Replace files that this program did not write.")
    ] = False,
) -> None:
    """Has the option that commands are given."""


def guard_outputs(command: Any) -> None:  # noqa: ANN401 - vendored types
    """Give a command that writes files, and its subcommands, ``--force`` and what it stands for."""
    for subcommand in getattr(command, "commands", {}).values():
        guard_outputs(subcommand)
    options = {each.name: each.opts[0] for each in command.params}
    if OUTPUTS.isdisjoint(options.values()):
        return
    checked = {each.opts[0] for each in command.params if each.metavar == "FILE"} - OWNED
    run, (force, *_) = command.invoke, typer.main.get_command(_template).params
    command.params.append(force)

    def invoke(context: Any) -> Any:  # noqa: ANN401 - vendored types
        from fusion_bench.io.outputs import guard_outputs as guard

        is_forced = context.params.pop(force.name)
        given = {
            options[name]: value
            for name, value in context.params.items()
            if isinstance(value, Path) and value != STDOUT
        }
        outputs = {option: path for option, path in given.items() if option in OUTPUTS}
        inputs = [path for option, path in given.items() if option not in OUTPUTS]
        files = [path for path in inputs if not path.is_dir()]
        with guard(outputs, files, is_forced=is_forced, checked=checked):
            return run(context)

    command.invoke = invoke
