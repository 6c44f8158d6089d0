"""Measures that the engine does not compute itself: ir_measures does.

This is the only module that imports ir_measures, and only when such a measure is asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import SubprocessError
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.data.records import Qrels
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.measures.ir_measures_input import judgements_table, ranked_table
from fusion_bench.measures.ranking import seen_as_judged

__all__ = ["canonical", "from_ir_measures", "judged_only_name"]

EXAMPLES: Final = (
    *("nDCG@10", "nDCG(dcg='exp-log2')@10", "RR@10", "RR(rel=2)@10"),
    *("R@100", "AP@100", "P@5", "Success@1", "Judged@10"),
    "or any other name that ir_measures can compute, such as Bpref",
)

#: The providers behind ir_measures are scripts, extensions and Python code of many hands; some
#: assert on what the installed pandas hands them.
PROVIDER_ERRORS: Final = (
    ArithmeticError,
    AssertionError,
    LookupError,
    OSError,
    RuntimeError,
    SubprocessError,
    TypeError,
    ValueError,
)


def canonical(text: str, binary_relevance: int, where: str) -> tuple[str, bool]:
    """Canonical name of a measure of ir_measures, and whether it is over judged documents only.

    Args:
        text: The name as given.
        binary_relevance: Put into the name of a measure that knows ``rel`` and has none.
        where: Prefix of the message.

    Raises:
        UnknownNameError: ir_measures does not know it, or none of its installed providers can
            compute it.
    """
    try:
        measure = _parse(text)
        rel = measure.SUPPORTED_PARAMS.get("rel")
        # NumRet is not binary unless it is told so: its rel has no default.
        if rel is not None and rel.default == 1 and "rel" not in measure.params:
            measure = measure(rel=binary_relevance)
        plain = _without_judged_only(measure)
        with _known_warnings():
            provided = _ir_measures().DefaultPipeline.supports(plain)
    # ir_measures asserts on what it is given, and calls classes with unchecked values.
    except (AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError):
        provided = False
    if not provided:
        raise UnknownNameError("measure", text, EXAMPLES, where=where)
    name = _name(plain, show_rel=binary_relevance != 1)
    judged_only = bool(measure.params.get("judged_only"))
    return judged_only_name(name) if judged_only else name, judged_only


def judged_only_name(name: str) -> str:
    """The name of the same measure over judged documents only.

    Not made by ir_measures, which has this option for some of its measures alone.
    """
    head, at, cutoff = name.partition("@")
    start = f"{head[:-1]}," if head.endswith(")") else f"{head}("
    return f"{start}judged_only=True){at}{cutoff}"


def _name(measure: Any, *, show_rel: bool) -> str:  # noqa: ANN401 - ir_measures has no types
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


def from_ir_measures(
    names: Sequence[str],
    runs: AlignedRuns,
    positions: IntArray,
    qrels: Qrels | None,
) -> FloatArray:
    """What ir_measures finds for the given order.

    ``judged_only`` is done here, by leaving the unjudged documents out: most providers of
    ir_measures do not have it.

    Args:
        names: Canonical names, (M,).
        runs: Whose queries and documents.
        positions: Shape (N,), 1-based; 0 = not returned.
        qrels: The judgements, which such measures need of unreturned documents too.

    Returns:
        Shape (M, Q). A query with an empty list has the measure's default.

    Raises:
        ConfigError: The judgements are missing, lack a query of the runs, or have negative grades
            that the measure would need; or ir_measures fails.
    """
    codes: dict[str, int] = {}
    judgements = judgements_table(names, runs, qrels, codes)
    measures = [_parse(name) for name in names]
    values = np.empty((len(names), len(runs.queries)))
    for judged_only in (False, True):
        chosen = [
            i for i, m in enumerate(measures) if bool(m.params.get("judged_only")) is judged_only
        ]
        listed = (positions > 0) & seen_as_judged(runs) if judged_only else positions > 0
        kept = np.flatnonzero(listed)
        asked = [_without_judged_only(measures[i]) for i in chosen]
        values[chosen] = _calculate(asked, ranked_table(runs, positions, kept, codes), judgements)
    return values


def _calculate(
    measures: Sequence[Any],
    ranked: dict[str, dict[str, float]],
    judgements: dict[str, dict[str, int]],
) -> FloatArray:
    """Shape (M, Q): one row a measure; queries in the order of the judgements."""
    values = np.empty((len(measures), len(judgements)))
    index = {query: q for q, query in enumerate(judgements)}
    for values_of_one, measure in zip(values, measures, strict=True):
        values_of_one[:] = measure.DEFAULT
        if not ranked:
            continue  # some providers cannot read an empty run
        known = {query: judgements[query] for query in ranked}
        # One measure at a time: asked together, they may be computed from one another's options.
        for query, value in _metrics(measure, known, ranked):
            values_of_one[index[query]] = value
    return values


def _metrics(
    measure: Any,  # noqa: ANN401 - see above
    judgements: dict[str, dict[str, int]],
    ranked: dict[str, dict[str, float]],
) -> list[tuple[str, float]]:
    """Query and value."""
    try:
        with _known_warnings():
            found = _ir_measures().iter_calc([measure], judgements, ranked)
            return [(metric.query_id, metric.value) for metric in found]
    except PROVIDER_ERRORS as e:
        raise ConfigError(f"{measure}: ir_measures could not compute it: {e}") from e


def _parse(name: str) -> Any:  # noqa: ANN401 - ir_measures ships no usable types
    """The measure object of ir_measures."""
    with _known_warnings():
        return _ir_measures().parse_measure(name)


def _without_judged_only(measure: Any) -> Any:  # noqa: ANN401 - see above
    rest = {key: value for key, value in measure.params.items() if key != "judged_only"}
    return type(measure)(**rest)


def _ir_measures() -> Any:  # noqa: ANN401 - see above
    with _known_warnings():
        import ir_measures

    return ir_measures


@contextmanager
def _known_warnings() -> Iterator[None]:
    """Silence what ir_measures is known to say of itself, and nothing else."""
    with warnings.catch_warnings():
        # It reads names with classes of `ast` that Python 3.12 and 3.13 call deprecated.
        warnings.filterwarnings("ignore", r"ast\.(Num|Str|NameConstant)", DeprecationWarning)
        warnings.filterwarnings("ignore", r"Attribute [ns] is deprecated", DeprecationWarning)
        yield
