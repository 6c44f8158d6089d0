"""Measures of any other name, which ir_measures computes: names and options."""

from __future__ import annotations

import re
from typing import Any, Final

from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.measures._base import Measure
from fusion_bench.measures.aliases import suggest_measures
from fusion_bench.measures.external.ir_measures_package import (
    import_ir_measures,
    parse_with_ir_measures,
    without_judged_only,
)
from fusion_bench.measures.rankings.ranking import Ranking

EXAMPLES: Final = (
    *("nDCG@10", "nDCG(dcg='exp-log2')@10", "RR@10", "RR(rel=2)@10"),
    *("R@100", "AP@100", "P@5", "Success@1", "Judged@10"),
    "or any other name that ir_measures can compute, such as Bpref",
)


class ExternalMeasure(Measure):
    """A measure of ir_measures, which reads its options from the name.

    Attributes:
        external_name: The canonical name.
    """

    method: str = "ir_measures"
    external_name: str

    @property
    def name(self) -> str:
        """The canonical name."""
        return self.external_name

    def compute_values(self, ranking: Ranking) -> FloatArray:
        """Not from a ranking alone: see ``ir_measures_backend``."""
        raise NotImplementedError(f"{self.name} is computed by ir_measures")

    def with_judged_only(self) -> Measure:
        """The same measure over judged documents only."""
        if self.judged_only:
            return self
        name = _judged_only_name(self.name)
        return ExternalMeasure(judged_only=True, external_name=name)


def parse_external_measure(text: str, binary_relevance: int, where: str) -> ExternalMeasure:
    """Read the name of a measure of ir_measures.

    Args:
        text: The name as given.
        binary_relevance: Put into the name of a measure that knows ``rel`` and has none.
        where: Prefix of the message.

    Raises:
        UnknownNameError: ir_measures does not know it, or none of its providers can compute it.
        ConfigError: The provider that can is not installed, or an option is missing; says how to
            install it, or which option.
    """
    missing: tuple[str, ...] = ()
    try:
        measure = parse_with_ir_measures(text)
        _check_options(measure)
        rel = measure.SUPPORTED_PARAMS.get("rel")
        # NumRet is binary only with an explicit rel: it has no default.
        if rel is not None and rel.default == 1 and "rel" not in measure.params:
            measure = measure(rel=binary_relevance)
        plain = without_judged_only(measure)
        with import_ir_measures() as ir_measures:
            provided = ir_measures.DefaultPipeline.supports(plain)
        missing = () if provided else _missing_providers(plain)
    # ir_measures asserts on what it is given, and calls classes with unchecked values.
    except (AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError):
        provided = False
    if missing:
        raise ConfigError(f"ir_measures needs another package for it: {' or '.join(missing)}")
    if not provided:
        similar = [name for name in suggest_measures(text) if name != text]
        raise UnknownNameError("measure", text, EXAMPLES, where=where, similar=similar)
    name = _canonical_name(plain, show_rel=binary_relevance != 1)
    judged_only = bool(measure.params.get("judged_only"))
    return ExternalMeasure(
        judged_only=judged_only, external_name=_judged_only_name(name) if judged_only else name
    )


def _check_options(measure: Any) -> None:  # noqa: ANN401 - ir_measures has no types
    """Refuse a measure without an option that it cannot do without.

    Raises:
        ConfigError: Names the options; or one has a number that cannot be written.
    """
    if re.search(r"\b(inf|nan)\b", repr(measure.params)):
        raise ConfigError("a number among its options is not finite")
    required = [name for name, option in measure.SUPPORTED_PARAMS.items() if option.required]
    missing = [name for name in required if name not in measure.params]
    if missing:
        options = ", ".join(f"{name}=…" for name in missing if name != measure.AT_PARAM)
        cutoff = "@…" if measure.AT_PARAM in missing else ""
        form = f"{measure.__name__}{f'({options})' if options else ''}{cutoff}"
        raise ConfigError(f"it needs {' and '.join(missing)}: {form}")


def _missing_providers(measure: Any) -> tuple[str, ...]:  # noqa: ANN401 - ir_measures has no types
    """How to install each provider of ir_measures that could compute a measure, were it there."""
    with import_ir_measures() as ir_measures:
        return tuple(
            f"{provider.install_instructions() or provider.NAME}"
            for provider in ir_measures.DefaultPipeline.providers
            if provider.supports(measure) and not provider.is_available()
        )


def _judged_only_name(name: str) -> str:
    """The name of the same measure over judged documents only.

    Not made by ir_measures, which has this option for some of its measures alone.
    """
    head, at, cutoff = name.partition("@")
    start = f"{head[:-1]}," if head.endswith(")") else f"{head}("
    return f"{start}judged_only=True){at}{cutoff}"


def _canonical_name(measure: Any, *, show_rel: bool) -> str:  # noqa: ANN401 - ir_measures has no types
    """The name as ir_measures prints it, with ``rel`` even where it is ir_measures' default."""
    options = [
        f"{key}={value!r}"
        for key, value in measure.params.items()
        if key != measure.AT_PARAM
        and (value != measure.SUPPORTED_PARAMS[key].default or (key == "rel" and show_rel))
    ]
    brackets = f"({','.join(options)})" if options else ""
    at = f"@{measure.params[measure.AT_PARAM]}" if measure.AT_PARAM in measure.params else ""
    return f"{measure.__name__}{brackets}{at}"
