"""Measures of any other name, which ir_measures computes: names, options, values.

ir_measures gets our order, as pseudo-scores that fall strictly: trec_eval compares scores as
32-bit floats, and the providers behind ir_measures break ties in different ways. Numbers replace
the ids, because some providers write ids to files that are split at blanks, and gdeval reads no
other query ids.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import SubprocessError
from typing import Any, Final

import numpy as np

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.grouped_rows import query_slices
from fusion_bench.data.ordering import FloatArray, IntArray
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.measures._base import Measure
from fusion_bench.measures.aliases import suggest_measures
from fusion_bench.measures.rankings import Ranking, has_grade


@contextmanager
def import_ir_measures() -> Iterator[Any]:
    """The package, without the warnings that it is known to raise of itself, and no others."""
    with warnings.catch_warnings():
        # It reads names with classes of `ast` that Python 3.12 and 3.13 call deprecated.
        warnings.filterwarnings("ignore", r"ast\.(Num|Str|NameConstant)", DeprecationWarning)
        warnings.filterwarnings("ignore", r"Attribute [ns] is deprecated", DeprecationWarning)
        import ir_measures

        yield ir_measures


def parse_with_ir_measures(name: str) -> Any:  # noqa: ANN401 - ir_measures ships no usable types
    """The measure object of ir_measures."""
    with import_ir_measures() as ir_measures:
        return ir_measures.parse_measure(name)


def without_judged_only(measure: Any) -> Any:  # noqa: ANN401 - see above
    """The measure's object without the option ``judged_only``."""
    rest = {key: value for key, value in measure.params.items() if key != "judged_only"}
    return type(measure)(**rest)


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
        """The measure, restricted to judged documents."""
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
        if re.search(r"\b(inf|nan)\b", repr(measure.params)):
            raise ConfigError("a number among its options is not finite")
        required = [name for name, option in measure.SUPPORTED_PARAMS.items() if option.required]
        needed = [name for name in required if name not in measure.params]
        if needed:
            options = ", ".join(f"{name}=…" for name in needed if name != measure.AT_PARAM)
            cutoff = "@…" if measure.AT_PARAM in needed else ""
            form = f"{measure.__name__}{f'({options})' if options else ''}{cutoff}"
            raise ConfigError(f"it needs {' and '.join(needed)}: {form}")
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


def evaluate_externally(names: Sequence[str], runs: AlignedRuns, positions: IntArray) -> FloatArray:
    """Values that ir_measures computes for the given order.

    ``judged_only`` is done here, by leaving the unjudged documents out: most providers of
    ir_measures do not have it.

    Args:
        names: Canonical names, (M,).
        runs: Whose queries and documents.
        positions: Shape (N,), 1-based; 0 = not returned.

    Returns:
        Shape (M, Q). A query with an empty list has the measure's default.

    Raises:
        ConfigError: The judgments are missing, lack a query of the runs, or have negative grades
            that the measure would need; or ir_measures fails.
    """
    # A stand-in for each document id, the same at every mention.
    codes: dict[str, str] = defaultdict(lambda: f"d{len(codes)}")
    judgments = _judgments_table(names, runs, codes)
    measures = [parse_with_ir_measures(name) for name in names]
    values = np.empty((len(names), len(runs.queries)))
    for judged_only in (False, True):
        chosen = [
            i for i, m in enumerate(measures) if bool(m.params.get("judged_only")) is judged_only
        ]
        is_kept = (positions > 0) & has_grade(runs) if judged_only else positions > 0
        kept = np.flatnonzero(is_kept)
        plain = [without_judged_only(measures[i]) for i in chosen]
        ranked: dict[str, dict[str, float]] = {}
        depth = int(positions.max(initial=0)) + 1
        columns = (runs.query_index[kept], runs.documents[kept], depth - positions[kept])
        for query, document, score in zip(*(column.tolist() for column in columns), strict=True):
            ranked.setdefault(str(query + 1), {})[codes[runs.vocabulary[document]]] = float(score)
        values[chosen] = _calculate_values(plain, ranked, judgments)
    return values


def _calculate_values(
    measures: Sequence[Any],
    ranked: dict[str, dict[str, float]],
    judgments: dict[str, dict[str, int]],
) -> FloatArray:
    """Shape (M, Q): one row a measure; queries in the order of the judgments."""
    values = np.empty((len(measures), len(judgments)))
    index = {query: q for q, query in enumerate(judgments)}
    known = {query: judgments[query] for query in ranked}
    for row, measure in zip(values, measures, strict=True):
        row[:] = measure.DEFAULT
        if not ranked:
            continue  # some providers cannot read an empty run
        try:
            # One measure at a time: together, they may be computed from one another's options.
            with import_ir_measures() as ir_measures:
                for metric in ir_measures.iter_calc([measure], known, ranked):
                    row[index[metric.query_id]] = metric.value
        except PROVIDER_ERRORS as e:
            raise ConfigError(f"{measure}: ir_measures could not compute it: {e}") from e
    return values


def _judgments_table(
    names: Sequence[str], runs: AlignedRuns, codes: dict[str, str]
) -> dict[str, dict[str, int]]:
    """Query → document → grade, for the queries of the runs and in their order.

    Negative grades are left out, as to trec_eval they are not judged: pytrec_eval, handed some,
    crashes or never returns. A query that had no others keeps one document that no run returns.
    """
    qrels = runs.qrels
    if qrels is None:
        raise ConfigError(
            f"{', '.join(names)}: computed by ir_measures, which needs the judgments: pass qrels"
        )
    if (qrels.grades < 0).any() and any(name.startswith("infAP") for name in names):
        raise ConfigError(
            "infAP takes a negative grade for 'pooled, not judged', which pytrec_eval cannot be "
            "handed: leave infAP out, or the negative grades"
        )
    rows = dict(query_slices(qrels.queries, qrels.offsets))
    missing = [query for query in runs.queries if query not in rows]
    if missing:
        raise ConfigError(
            f"query {missing[0]!r} of the runs is not in the qrels given for {names[0]}"
        )
    return {
        str(q): {
            codes[qrels.vocabulary[document]]: grade
            for document, grade in zip(
                qrels.documents[rows[query]].tolist(),
                qrels.grades[rows[query]].tolist(),
                strict=True,
            )
            if grade >= 0
        }
        or {"nothing": 0}
        for q, query in enumerate(runs.queries, start=1)
    }
