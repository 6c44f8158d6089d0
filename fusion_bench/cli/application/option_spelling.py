"""How the values of options are spelled: plain digits alone, as in files, and no empty names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from fusion_bench.util.decimal_numbers import is_decimal

SPELLING = "a number has plain digits, such as 12, 0.005 or 1e-3"
#: What Python makes of bytes that are no UTF-8, as it writes them in quotes.
SURROGATE = re.compile(r"(?<!\\)(?:\\\\)*\\ud[89a-f]")
UNREADABLE = "not UTF-8 text; a file or folder of such a name has to be renamed"
EMPTY = "an empty name, perhaps of a variable that is not set: name a file or a folder"


def check_spelling(command: Any) -> None:  # noqa: ANN401 - vendored types
    """Let the options of a command and of its subcommands refuse other spellings.

    Typer takes what Python does: ``1_000``, ``inf``, blanks around. ``--max-cost 1_5`` would be 15,
    and an empty path the working directory.
    """
    for parameter in command.params:
        _check_parameter(parameter)
    for subcommand in getattr(command, "commands", {}).values():
        check_spelling(subcommand)


def _check_parameter(parameter: Any) -> None:  # noqa: ANN401 - vendored types
    convert = parameter.process_value

    def process_value(context: typer.Context, text: Any) -> Any:  # noqa: ANN401 - any option's
        value = convert(context, text)
        if SURROGATE.search(repr(text)):
            raise typer.BadParameter(UNREADABLE, ctx=context, param=parameter)
        if _is_number(value) and isinstance(text, str) and not is_decimal(text):
            raise typer.BadParameter(f"{SPELLING}, given {text!r}", ctx=context, param=parameter)
        is_path = isinstance(value[0] if isinstance(value, list) and value else value, Path)
        if is_path and (text == "" or (isinstance(text, list | tuple) and "" in text)):
            raise typer.BadParameter(EMPTY, ctx=context, param=parameter)
        return value

    parameter.process_value = process_value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
