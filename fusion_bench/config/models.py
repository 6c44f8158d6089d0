"""Strict models of configuration: their numbers, the limits of these, errors of one line.

Beyond the limits a number is a slip of the finger: it would cost memory or days, and give no other
result. ``docs/reference/performance.md`` has the table.

Pydantic takes ``true`` for 1, ``'60'`` for 60 and 1 for ``true``. Whoever writes one of these into
a configuration means something else. The rules hold for every model, so they stand in one place
and no field has to ask for them.

A key that a model does not know is an error that lists the known ones; an error names the path of
the offending value.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError, PydanticKnownError, core_schema

from fusion_bench.errors import ConfigError, did_you_mean
from fusion_bench.util.environment import NO_PLUGINS
from fusion_bench.util.formatting import GREATEST, is_decimal

log = logging.getLogger(__name__)

#: Ranks: cutoffs of measures, depths, ``top_k``. No list is longer.
MOST_RANK: Final = 1_000_000
#: Parameter sets of a search.
MOST_TRIALS: Final = 1_000_000
#: Folds of a cross-validation.
MOST_FOLDS: Final = 1_000
#: Threads, processes, and requests at once.
MOST_WORKERS: Final = 1_024
#: Texts or documents in one request.
MOST_BATCH: Final = 100_000


#: A rank from 1 that something is cut at.
Rank: TypeAlias = Annotated[int, Field(ge=1, le=MOST_RANK)]


#: From this score on the unit scale a result is correct …
CORRECT_FROM: Final = 0.7
#: … and up to this one incorrect.
INCORRECT_TO: Final = 0.3


#: Parts of a schema that hold no schema.
OPAQUE: Final = frozenset({"metadata", "default", "config", "serialization", "expected", "cls"})
#: Kinds of schemas that are rewritten.
KINDS: Final = frozenset({"int", "float", "bool"})
#: The digits of a key that is a whole number, as JSON writes it.
RANK: Final = re.compile(r"[1-9]\d{0,17}", re.ASCII)


class StrictNumbers:
    """Base of a pydantic model whose numbers are numbers and whose switches are true or false.

    - A float may be a whole number, or ``1e-3``, which YAML 1.1 takes for text. Where text is
      allowed too, it stays text.
    - A whole number may be 2.0, and fits into 64 bits.
    - A key that is a whole number may be its digits, as JSON writes it; 1.0 is none.

    Models inside it keep their own rules.
    """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Return pydantic's schema of the model without what it would convert."""

        def rewrite(part: Any, *, is_text: bool = False) -> Any:  # noqa: ANN401 - schemas of pydantic are plain dictionaries
            if isinstance(part, list | tuple):
                return type(part)(rewrite(item, is_text=is_text) for item in part)
            kind = part.get("type") if isinstance(part, dict) else None
            if kind in KINDS:
                if kind == "int":
                    return core_schema.no_info_before_validator_function(_check_whole, part)
                strict = {**part, "strict": True}
                if kind == "bool" or is_text:
                    return strict
                return core_schema.no_info_before_validator_function(_read_exponent, strict)
            if not isinstance(part, dict) or (kind == "model" and part["cls"] is not cls):
                return part
            if kind == "union":  # a choice may have a label behind it
                choices = (each[0] if isinstance(each, tuple) else each for each in part["choices"])
                is_text = is_text or any(choice.get("type") == "str" for choice in choices)
            rewritten = {
                key: rewrite(value, is_text=is_text) if kind is None or key not in OPAQUE else value
                for key, value in part.items()
            }
            if kind == "dict" and part.get("keys_schema", {}).get("type") == "int":
                rewritten["keys_schema"] = core_schema.no_info_before_validator_function(
                    _check_key, part["keys_schema"]
                )
            return rewritten

        return cast("core_schema.CoreSchema", rewrite(handler(source)))


def _read_exponent(value: object) -> object:
    """The number of ``1e-3``, which YAML 1.1 takes for text; anything else as it is.

    Raises:
        PydanticKnownError: A whole number beyond what a float holds.
    """
    if isinstance(value, str) and "e" in value.lower() and is_decimal(value):
        return float(value)
    if isinstance(value, int) and abs(value) > GREATEST:
        raise _too_large()
    return value


def _check_whole(value: object) -> object:
    """The value, unless pydantic would only take it for a whole number, or it is too large."""
    if isinstance(value, bool | str | bytes):
        raise PydanticKnownError("int_type")
    if isinstance(value, int) and abs(value) > GREATEST:
        raise _too_large()
    return value


def _check_key(value: object) -> object:
    """A key that is a whole number, or its digits."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= GREATEST
    if is_whole or (isinstance(value, str) and RANK.fullmatch(value)):
        return value
    raise PydanticKnownError("int_type")


def _too_large() -> PydanticCustomError:
    return PydanticCustomError("too_large", "input should be at most {most}", {"most": GREATEST})


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


class DeferredModel(BaseModel):
    """A model of this package, which is completed when it is first used.

    No plugin of pydantic sees it: to look for them in all that is installed takes longer than to
    complete most models.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def model_rebuild(cls, **options: Any) -> bool | None:  # noqa: ANN401 - pydantic's own
        """Complete the class; pydantic reads the variable each time: other models keep theirs."""
        depth = options.pop("_parent_namespace_depth", 2) + 1  # of this method's own frame
        with NO_PLUGINS:
            return super().model_rebuild(_parent_namespace_depth=depth, **options)


class StrictModel(StrictNumbers, DeferredModel):
    """A frozen model that refuses keys it does not know, by name.

    Attributes:
        old_keys: Key of an earlier version → what to write now, or to delete it.
        ignored_keys: Key of an earlier version that is read without effect → why, which is logged.
    """

    old_keys: ClassVar[Mapping[str, str]] = {}
    ignored_keys: ClassVar[Mapping[str, str]] = {}
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any) -> Any:  # noqa: ANN401 - anything may stand in YAML
        if isinstance(data, Mapping):
            for key in cls.ignored_keys.keys() & data.keys():
                log.warning("'%s' has no effect: %s", key, cls.ignored_keys[key])
            data = {key: value for key, value in data.items() if key not in cls.ignored_keys}
            for key in data:
                if key in cls.model_fields:
                    continue
                known = list(cls.model_fields)
                hint = did_you_mean(str(key), known)
                if isinstance(key, bool):
                    hint = "; YAML reads a bare on, off, yes or no as true or false: quote it"
                text = f"unknown key {str(key)!r}{hint} (known: {', '.join(known)})"
                if isinstance(key, str):
                    text = cls.old_keys.get(key, text)
                raise PydanticCustomError("unknown_key", "{text}", {"text": text, "key": key})
        return data


def parse_model(
    model: type[Model], data: object, where: Callable[[Location], str] | str = ""
) -> Model:
    """Build ``model`` from ``data``; the first thing wrong becomes a one-line error.

    Args:
        model: A strict model.
        data: What was read.
        where: Turns the path of a value into the prefix of the message; or stands before the path.

    Raises:
        ConfigError: Says where, what rule, what was given, what is allowed.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise make_config_error(error, data, where) from None


def make_config_error(
    error: ValidationError, data: object, where: Callable[[Location], str] | str = ""
) -> ConfigError:
    """The first thing wrong in one line; arguments as for :func:`parse_model`."""
    errors: list[Any] = list(error.errors(include_url=False))
    places = [_locate_error(details, data) for details in errors]
    # Of the kinds that a value may be of, the one whose error lies deepest was meant.
    tried = [n for n, place in enumerate(places) if place[: len(places[0])] == places[0]]
    chosen = max(tried, key=lambda n: len(places[n]))
    location, first = places[chosen], errors[chosen]
    if isinstance(where, str):
        prefix = ".".join(map(str, (where, *location) if where else location))
    else:
        prefix = where(location)
    message, kind = str(first["msg"]).removeprefix("Value error, "), first["type"]
    if kind == "missing":
        message = "is required"
    elif kind not in {"unknown_key", "value_error"}:
        message = NEEDED.get(kind, message)
        message = f"{message[0].lower()}{message[1:]}, given {first['input']!r:.200}"
    return ConfigError(f"{prefix}: {message}" if prefix else message)


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
