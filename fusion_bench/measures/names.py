"""Measure names, read as ir_measures writes them: ``nDCG@10``, ``RR(rel=2)@10``, ``AP``.

The parser is our own, because importing ir_measures costs more than a small evaluation does. It
imports ir_measures only for a name that no class of this package or of a plugin has.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Final, TypeAlias

from fusion_bench.config.models import parse_model
from fusion_bench.config.plugins import is_reference, read_entry_points
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.measures._base import BinaryMeasure, Measure, measure_classes
from fusion_bench.measures.aliases import resolve_alias
from fusion_bench.measures.external_measures import parse_external_measure
from fusion_bench.util.formatting import is_decimal

Options: TypeAlias = dict[str, object]

#: Characters of a name: Python takes long over numbers of thousands of digits.
MOST_CHARACTERS: Final = 500
FORM: Final = re.compile(
    r"\s*(?P<head>[\w.]+(?::\w+)?)\s*(?:\((?P<options>.*)\))?\s*(?:@\s*(?P<cutoff>\S+))?\s*",
    re.DOTALL,
)


def parse_measure(text: str, *, binary_relevance: int = 1, where: str = "") -> Measure:
    """Read a measure's name.

    Args:
        text: Such as ``nDCG(dcg='exp-log2')@10``, ``package.module:Class@10``, or an alias that
            :func:`~fusion_bench.measures.aliases.resolve_alias` knows, such as ``mrr@10``.
        binary_relevance: Grade from which a document is relevant to binary measures without
            ``rel``. Where it is not 1, the name of every binary measure states its ``rel``.
        where: Prefix of messages that says where the name stands.

    Raises:
        ConfigError: An option, a value or a cutoff that the measure does not take.
        UnknownNameError: No class has this name, and ir_measures cannot compute it.
    """
    prefix = f"{where}: " if where else ""
    if isinstance(binary_relevance, bool) or binary_relevance < 1:
        raise ConfigError(f"{prefix}binary_relevance must be at least 1, not {binary_relevance}")
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"{prefix}cannot use measure {text[:40]!r}…: a name has at most {MOST_CHARACTERS} "
            "characters"
        )
    try:
        name = resolve_alias(text)
        match = FORM.fullmatch(name)
        model = None if match is None else _find_class(match["head"])
        if match is None or model is None:
            return parse_external_measure(name, binary_relevance, where)
        options = _parse_options(match["options"], match["cutoff"])
        if not model.external_options.isdisjoint(options):
            return parse_external_measure(name, binary_relevance, where)
        return _build_measure(model, match["head"], options, binary_relevance)
    except (ValueError, ConfigError) as error:
        if isinstance(error, UnknownNameError):
            raise
        raise ConfigError(f"{prefix}cannot use measure {text!r}: {error}") from error


def _find_class(head: str) -> type[Measure] | None:
    """The class of a name; None = it is for ir_measures to read."""
    if is_reference(head):
        return measure_classes.find_plugin(head)
    built_in = measure_classes.load_built_in()
    if head in built_in:
        return built_in[head]
    if head in read_entry_points(measure_classes.group):
        return measure_classes.find_plugin(head)
    return measure_classes.find_own(head)


def _parse_options(text: str | None, cutoff: str | None) -> Options:
    """``rel=2, judged_only=True`` and the cutoff as a mapping."""
    source = f"f({text or ''})"
    try:
        call = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not a list of options such as rel=2") from error
    if not isinstance(call, ast.Call) or call.args:
        raise ValueError(f"options are named, as in (rel=2); given: ({text})")
    options = {
        str(option.arg): _parse_literal(ast.get_source_segment(source, option.value) or "")
        for option in call.keywords
    }
    if cutoff is not None:
        if "cutoff" in options:
            raise ValueError("the cutoff is given twice")
        options["cutoff"] = _parse_literal(cutoff)
    return options


def _parse_literal(text: str) -> object:
    """A number in plain digits, or another literal of Python."""
    try:
        value: object = ast.literal_eval(text)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{text!r} is neither a number nor a quoted text") from error
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not is_decimal(text):
        raise ValueError(f"{text!r} is not written in plain digits, such as 10 or 0.5")
    return value


def _build_measure(
    model: type[Measure], head: str, options: Options, binary_relevance: int
) -> Measure:
    """The measure, after a check of the options' names."""
    allowed = {*model.option_names(), "cutoff"}
    for key in options:
        if key not in allowed:
            known = ", ".join(sorted(allowed))
            raise ValueError(f"{head} has no option {key!r} (known: {known})")
    if "cutoff" in options and options["cutoff"] is None:
        raise ValueError("the cutoff must be a whole number from 1, not None")
    data: dict[str, Any] = dict(options)
    if is_reference(head):
        data["method"] = head
    if issubclass(model, BinaryMeasure):
        data = {"rel": binary_relevance, "default_rel": binary_relevance} | data
    return parse_model(model, data)
