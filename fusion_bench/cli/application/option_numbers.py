"""Numbers among the options of a command: plain digits alone, as in files."""

from __future__ import annotations

from typing import Any

import typer

from fusion_bench.util.decimal_numbers import is_decimal

SPELLING = "a number has plain digits, such as 12, 0.005 or 1e-3"


def require_plain_digits(command: Any) -> None:  # noqa: ANN401 - vendored types
    """Let the options of a command and of its subcommands refuse other spellings of numbers.

    Typer takes what Python does: ``1_000``, ``inf``, blanks around. ``--max-cost 1_5`` would be 15.
    """
    for parameter in command.params:
        _check_spelling(parameter)
    for subcommand in getattr(command, "commands", {}).values():
        require_plain_digits(subcommand)


def _check_spelling(parameter: Any) -> None:  # noqa: ANN401 - vendored types
    convert = parameter.process_value

    def process_value(context: typer.Context, text: Any) -> Any:  # noqa: ANN401 - any option's
        value = convert(context, text)
        if _is_number(value) and isinstance(text, str) and not is_decimal(text):
            raise typer.BadParameter(f"{SPELLING}, given {text!r}", ctx=context, param=parameter)
        return value

    parameter.process_value = process_value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
