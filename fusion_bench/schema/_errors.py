"""The first thing wrong with a record, in one line."""

from __future__ import annotations

import typing
from typing import Any

from pydantic import BaseModel, ValidationError

from fusion_bench.errors import did_you_mean

#: pydantic's type of the error of an unknown key.
UNKNOWN_KEY = "extra_forbidden"
#: Most characters of a value that a message repeats.
SHOWN = 80


def format_first_error(error: ValidationError, model: type[BaseModel]) -> str:
    """``results.0.score: input should be …, given 1.5``.

    Args:
        error: What pydantic says.
        model: The record that was read.
    """
    first = _choose_error(error.errors(include_url=False))
    place = [part for part in first["loc"] if not str(part).startswith("function-")]
    if first["type"] == UNKNOWN_KEY:
        *owner, key = place
        text = _describe_unknown_key(str(key), _find_model(model, owner))
        place = owner
    elif first["type"] == "missing":
        text = "is required"
    elif first["type"] == "json_invalid":
        text = str(first["msg"])
    else:
        text = _format_message(str(first["msg"]), first["input"])
    prefix = ".".join(map(str, place))
    return f"{prefix}: {text}" if prefix else text


def _choose_error(errors: list[Any]) -> Any:  # noqa: ANN401 - pydantic's ErrorDetails
    """The first error; where a key is missing, the unknown key beside it that was meant for it."""
    first = errors[0]
    beside = (each for each in errors if each["loc"][:-1] == first["loc"][:-1])
    unknown = (each for each in beside if each["type"] == UNKNOWN_KEY)
    return next(unknown, first) if first["type"] == "missing" else first


def _format_message(message: str, given: object) -> str:
    if message.startswith(("Input", "Value", "String")):
        message = message[0].lower() + message[1:]
    if ", given " in message:
        return message
    value = repr(given)
    if len(value) <= SHOWN:
        return f"{message}, given {value}"
    return message if isinstance(given, dict) else f"{message}, given {value[:SHOWN]}…"


def _describe_unknown_key(key: str, model: type[BaseModel]) -> str:
    known = [field.alias or name for name, field in model.model_fields.items()]
    return f"unknown key {key!r}{did_you_mean(key, known)} (known: {', '.join(known)})"


def _find_model(model: type[BaseModel], place: list[Any]) -> type[BaseModel]:
    """The model of the object at this place of a record."""
    for part in place:
        for name, field in model.model_fields.items():
            if part in (name, field.alias):
                model = _model_in(field.annotation) or model
    return model


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model that an annotation names, alone, in a tuple, or beside None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    models = map(_model_in, typing.get_args(annotation))
    return next((model for model in models if model is not None), None)
