"""Functions and classes of the user as methods: what they are made into, where they come from.

A report names the SHA-256 of their source in place of a distribution. What else decides their
numbers (a closure, a default that is no plain data, a global name of their module) is in no source:
then they are not replayable, and the text that names them says so.
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import inspect
import itertools
import linecache
import math
import sys
import textwrap
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, Final, TypeGuard, TypeVar

from fusion_bench.config.plugins import is_installed, user_code
from fusion_bench.errors import ConfigError

NOT_REPLAYABLE: Final = "not replayable"
#: Types of values that a report can state.
PLAIN: Final = (bool, int, float, str, type(None))
_serials: Final = itertools.count(1)


def is_own(given: object) -> TypeGuard[Callable[..., Any]]:
    """Whether it is a function or a class, and not the name or the record of a method."""
    return isinstance(given, type | functools.partial) or inspect.isroutine(given)


def name_own(given: Callable[..., Any]) -> str:
    """The name of a function or a class; that of what a partial call is of."""
    inner = given.func if isinstance(given, functools.partial) else given
    return str(getattr(inner, "__name__", "own")).strip("<>")


def describe_source(given: Callable[..., Any]) -> str:
    """``source sha256:…``; of what cannot be run again from its source also why, and a number.

    The number tells it from others of the same source in this process.
    """
    source = read_source(given)
    digest = "no source"
    if source is not None:
        digest = f"source sha256:{hashlib.sha256(source.encode()).hexdigest()}"
    captured = sorted(set(_find_captured(given)))
    if source is not None and not captured:
        return digest
    reason = f"captures {', '.join(captured)}; " if captured else ""
    return f"{NOT_REPLAYABLE} ({reason}{digest}; #{next(_serials)})"


def locate_raise(error: BaseException, files: Collection[str]) -> str:
    """``FILE:LINE: `` of the last line of some files that an error went through; empty = none."""
    steps = traceback.extract_tb(error.__traceback__)
    places = [f"{step.filename}:{step.lineno}: " for step in steps if step.filename in files]
    return places[-1] if places else ""


def read_source(given: Callable[..., Any]) -> str | None:
    """The text of a function or a class without its indentation; None = it has none.

    Nor has what was edited since it was read.
    """
    if isinstance(given, functools.partial):
        return None
    try:
        text = textwrap.dedent(inspect.getsource(given))
    except (OSError, TypeError):
        text = _read_notebook_class(given) if isinstance(given, type) else ""
    is_alone = name_own(given) != "lambda" or text.count("lambda") == 1
    # The files of its functions may have changed since they were imported.
    is_current = all(
        function.__code__ in _compile_file(function.__code__) for function in _list_functions(given)
    )
    return text if text and is_alone and is_current else None


def _read_notebook_class(given: type) -> str:
    """The text of a class whose module has no file: that of the cell that its functions are of."""
    for function in _list_functions(given):
        lines = "".join(linecache.getlines(function.__code__.co_filename))
        for node in ast.walk(ast.parse(lines)):
            if isinstance(node, ast.ClassDef) and node.name == given.__name__:
                return ast.get_source_segment(lines, node) or ""
    return ""


def _compile_file(code: CodeType) -> set[CodeType]:
    """All functions of the file or the cell that a function stands in."""
    lines = "".join(linecache.getlines(code.co_filename))
    flags = (code.co_flags & annotations.compiler_flag) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        return set(_list_codes(compile(lines, code.co_filename, "exec", flags, dont_inherit=True)))
    except (SyntaxError, ValueError):
        return set()


def _list_codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _list_codes(constant)


def _list_functions(given: Any) -> Iterator[FunctionType]:  # noqa: ANN401 - a function or a class
    """The function itself, or those that the body of a class defines: Pydantic adds its own."""
    members = [*vars(given).values()] if isinstance(given, type) else [given]
    for member in members:
        inner: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
        for function in (inner, inspect.unwrap(inner)):  # that of a decorator, and its own
            if isinstance(function, FunctionType) and function.__module__ == given.__module__:
                yield function


def _find_captured(given: Callable[..., Any]) -> Iterator[str]:
    """Names whose values decide what it computes, and stand neither in its source nor a package."""
    if isinstance(given, functools.partial):
        yield "arguments of a partial call"
        return
    if isinstance(given, type):
        bases = (base for base in given.__mro__[1:] if base.__module__ == given.__module__)
        yield from (base.__name__ for base in bases)
        known = vars(sys.modules.get(given.__module__, sys))
        # What the body reads outside its functions, but for annotations.
        tree = ast.parse(read_source(given) or "")
        body = (each for node in tree.body[:1] for each in getattr(node, "body", ()))
        parts = (getattr(each, "value", None) for each in body)
        nodes = (node for part in parts if isinstance(part, ast.AST) for node in ast.walk(part))
        read = (node.id for node in nodes if isinstance(node, ast.Name))
        yield from _find_changeable(read, known, given.__module__)
    for function in _list_functions(given):
        yield from (name for name in function.__code__.co_freevars if name != "__class__")
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not parameter.empty and not is_plain(parameter.default):
                yield name
        names = (
            str(step.argval)
            for each in (function.__code__, *_list_codes(function.__code__))
            for step in dis.get_instructions(each)
            if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"}
        )
        yield from _find_changeable(names, function.__globals__, function.__module__)


def _find_changeable(
    names: Iterable[str], known: Mapping[str, object], module: str
) -> Iterator[str]:
    """Those of some global names whose values no installed package defines."""
    return (name for name in names if name in known and not _is_imported(known[name], module))


def _is_imported(value: object, module: str) -> bool:
    """Whether a global value is a module of an installed package, or what one defines."""
    if isinstance(value, ModuleType):
        return is_installed(value)
    name = getattr(value, "__module__", None)
    home = None if name is None else sys.modules.get(name)
    return callable(value) and name != module and (home is None or is_installed(home))


def is_plain(value: object) -> bool:
    """Whether a report can state a value: numbers, texts, and lists and mappings of them."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return isinstance(value, PLAIN)


def describe_own(data: Any) -> Any:  # noqa: ANN401 - as an experiment has it
    """Replace functions and classes in the data by their names, so that it can be digested."""
    if isinstance(data, Mapping):
        return {key: describe_own(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(describe_own, data))
    return name_own(data) if is_own(data) else data


def is_own_origin(origin: object) -> bool:
    """Whether a report names a source of the user's own, and no distribution."""
    return isinstance(origin, str) and ("sha256:" in origin or origin.startswith(NOT_REPLAYABLE))


def list_own(config: object) -> Iterator[tuple[str, str]]:
    """Name and origin of each of the user's own methods in a resolved configuration."""
    values: Iterable[object] = config if isinstance(config, list | tuple) else ()
    if isinstance(config, Mapping):
        values, origin = config.values(), config.get("distribution")
        if is_own_origin(origin):
            yield str(config.get("method")), str(origin)
    for value in values:
        yield from list_own(value)


class UnfitValueError(Exception):
    """A function of the user returned what it must not; the message says what is needed."""


def require_number(value: Any) -> float:  # noqa: ANN401 - the user's own
    """Return a finite number that a function of the user returned.

    Raises:
        UnfitValueError: It is none.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise UnfitValueError(f"a finite number is needed, given {show_value(value)}")
    return number


def show_value(value: object) -> str:
    """A value as a message quotes it, in at most 80 characters."""
    try:
        return f"{value!r:.80}"
    except ValueError:  # Python prints no number of more than 4,300 digits
        return f"{type(value).__name__} of too many digits"


Result = TypeVar("Result")


class FunctionMethod:
    """The part of a method that calls a function of the user; a kind of method derives from it.

    Attributes:
        given: Names of what the function gets first; its other arguments are parameters.
        returned: What it returns, for messages.
        function: The user's function.
    """

    given: ClassVar[tuple[str, ...]] = ()
    returned: ClassVar[str] = ""
    function: ClassVar[Callable[..., Any]]
    _parameters: ClassVar[tuple[str, ...]] = ()

    def call(self, place: str, *given: object, read: Callable[[Any], Result]) -> Result:
        """Return what ``read`` makes of what the function returns.

        Args:
            place: What it is called for, for the message.
            given: Its first arguments.
            read: Checks what the function returns, which may be any object.

        Raises:
            ConfigError: The function or ``read`` raises anything.
        """
        own = type(self)
        parameters = {name: getattr(self, name) for name in own._parameters}

        def locate(error: BaseException) -> str:
            files = {each.__code__.co_filename for each in _list_functions(own.function)}
            return f"{locate_raise(error, files)}{name_own(own)}: {place}: "

        with user_code(locate):
            try:
                return read(own.function(*given, **parameters))
            except UnfitValueError as error:
                raise ConfigError(f"{name_own(own)}: {place}: {error}") from None


def required_arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the arguments that a function takes without a default."""
    parameters = inspect.signature(function).parameters.values()
    variable = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return tuple(p.name for p in parameters if p.default is p.empty and p.kind not in variable)


def make_model(base: Any, function: Callable[..., Any]) -> type:  # noqa: ANN401 - a class with FunctionMethod
    """The class of a method that calls a function; its defaults are the method's fields.

    Args:
        base: The kind of method, with :class:`FunctionMethod` among its bases.
        function: The user's.

    Raises:
        ConfigError: It takes other arguments, or a parameter has a name that is taken.
    """
    name, fields = name_own(function), dict[str, tuple[Any, Any]]()
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise ConfigError(f"{name}: its arguments are not known: wrap it in a function") from None
    needed = required_arguments(function)
    if len(needed) != len(base.given):
        raise ConfigError(
            f"{name}({', '.join(needed)}): gets {' and '.join(base.given)}, so it takes "
            f"{len(base.given)} without a default, and returns {base.returned}"
        )
    for each in listed:
        if each.default is not each.empty and is_plain(each.default):
            if hasattr(base, each.name) or each.name in base.model_fields or each.name[0] == "_":
                raise ConfigError(f"{name}: a parameter cannot be named {each.name!r}: rename it")
            is_simple = isinstance(each.default, PLAIN) and each.default is not None
            fields[each.name] = (type(each.default) if is_simple else Any, each.default)
    namespace = {
        "__doc__": inspect.getdoc(function) or f"``{name}``: a function of one's own.",
        "__module__": str(getattr(function, "__module__", __name__)),
        "__annotations__": {"method": str} | {key: kind for key, (kind, _) in fields.items()},
        "method": name,
        **{key: default for key, (_, default) in fields.items()},
    }
    model: Any = type(base)(name, (base,), namespace)
    model.function, model._parameters = staticmethod(function), tuple(fields)
    return model  # type: ignore[no-any-return]
