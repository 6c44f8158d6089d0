"""Strict models of configuration, and errors of one line.

A key that a model does not know is an error that lists the known ones; an error names the path of
the offending value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fusion_bench.config.strict_numbers import StrictNumbers
from fusion_bench.errors import ConfigError, did_you_mean

Location: TypeAlias = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)
V = TypeVar("V")

#: pydantic's messages in terms of YAML instead of Python, by type of error.
NEEDED = {
    "dict_type": "a mapping of keys to values is needed",
    "model_type": "a mapping of keys to values is needed",
    "string_type": "text is needed (numbers, dates, yes and on need quotes)",
    "tuple_type": "a list is needed, such as [a, b]",
}


#: A finite weight; 0 switches its source off.
Weight: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def refuse_repeats(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each of them different.

    Raises:
        ValueError: One is listed twice.
    """
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name!r} is listed twice: keep one")
    return names


#: Different names, in a list.
UniqueNames: TypeAlias = Annotated[tuple[str, ...], AfterValidator(refuse_repeats)]


def _sort_by_rank(table: dict[int, V]) -> dict[int, V]:
    return dict(sorted(table.items()))


#: Rank up to which → value, in the order of the ranks.
ByRank: TypeAlias = Annotated[dict[Annotated[int, Field(ge=1)], V], AfterValidator(_sort_by_rank)]


class StrictModel(StrictNumbers, BaseModel):
    """A frozen model that refuses keys it does not know, by name.

    Attributes:
        old_keys: Key of an earlier version → what to write now, or to delete it.
    """

    old_keys: ClassVar[Mapping[str, str]] = {}
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise PydanticCustomError(
                        "unknown_key",
                        "{text}",
                        {"text": _describe_unknown_key(key, cls), "key": key},
                    )
        return data


def _describe_unknown_key(key: object, model: type[StrictModel]) -> str:
    if isinstance(key, str) and key in model.old_keys:
        return model.old_keys[key]
    known = list(model.model_fields)
    hint = did_you_mean(str(key), known)
    if isinstance(key, bool):
        hint = "; YAML reads a bare on, off, yes or no as true or false: quote it"
    return f"unknown key {str(key)!r}{hint} (known: {', '.join(known)})"


def parse_model(
    model: type[Model], data: object, where: Callable[[Location], str] | None = None
) -> Model:
    """Build ``model`` from ``data``; the first thing wrong becomes a one-line error.

    Args:
        model: A strict model.
        data: What was read.
        where: Turns the path of a value into the prefix of the message.

    Raises:
        ConfigError: Says where, what rule, what was given, what is allowed.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise make_config_error(error, data, where) from None


def make_config_error(
    error: ValidationError, data: object, where: Callable[[Location], str] | None = None
) -> ConfigError:
    """The first thing wrong in one line; arguments as for :func:`parse_model`."""
    location, first = _first_error(error, data)
    prefix = where(location) if where else ".".join(str(part) for part in location)
    message = _format_message(first)
    return ConfigError(f"{prefix}: {message}" if prefix else message)


def _first_error(error: ValidationError, data: object) -> tuple[Location, Any]:
    """Path and details of the first error."""
    errors: list[Any] = list(error.errors(include_url=False))
    places = [_locate_error(details, data) for details in errors]
    # Of the kinds that a value may be of, the one whose error lies deepest was meant.
    tried = [n for n, place in enumerate(places) if place[: len(places[0])] == places[0]]
    chosen = max(tried, key=lambda n: len(places[n]))
    return places[chosen], errors[chosen]


def _locate_error(error: Any, data: object) -> Location:  # noqa: ANN401 - as above
    """The path of an error through the data: pydantic adds names of the types it tried."""
    place: Location = ()
    for part in error["loc"]:
        if isinstance(data, Mapping):
            given = {str(key): value for key, value in data.items()}
            if str(part) in given or error["type"] == "missing":
                place, data = (*place, part), given.get(str(part))
        elif isinstance(data, list | tuple) and isinstance(part, int):
            place, data = (*place, part), data[part]
        elif error["type"] == "missing":  # of a method that is given by its name alone
            place = (*place, part)
    key = (error.get("ctx") or {}).get("key")
    return place if key is None else (*place, key)


def _format_message(error: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails is a TypedDict
    text = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] in {"unknown_key", "value_error"}:
        return text
    if error["type"] == "missing":
        return "is required"
    text = NEEDED.get(error["type"], text)
    return f"{text[0].lower()}{text[1:]}, given {error['input']!r:.200}"
