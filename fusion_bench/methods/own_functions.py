"""Methods that call a function of the user for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fusion_bench.config.own_methods import (
    FunctionMethod,
    UnfitValueError,
    require_number,
    show_value,
)
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import BoolArray, FloatArray, IntArray
from fusion_bench.methods.blend.formulas import Fused, RerankBlend
from fusion_bench.methods.fuse import Fusion
from fusion_bench.methods.normalize import Normalizer, ScoreLists

SCORES = "{document: score} of all documents that it gets"


class FunctionFusion(FunctionMethod, Fusion):
    """A function of the lists of one query.

    It gets a mapping from each source's name to ``{document: score}``, the best first; the sources
    stand in the order of their names, and one that returned nothing has an empty list.
    """

    given: ClassVar[tuple[str, ...]] = ("lists",)
    returned: ClassVar[str] = SCORES
    reorders: ClassVar[bool] = True  # it may

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        """(N,): the scores of the function, query by query."""
        rows = sorted(range(len(runs.sources)), key=runs.sources.__getitem__)
        scores = np.empty(len(runs.documents))
        for query, part, documents in _list_queries(runs):
            scored, ranked = runs.scores[:, part], runs.ranks[:, part]
            lists = {
                runs.sources[s]: _rank_documents(documents, scored[s], ranked[s]) for s in rows
            }
            scores[part] = self.call(query, lists, read=partial(_read_scores, documents))
        return scores


class FunctionNormalizer(FunctionMethod, Normalizer):
    """A function of the scores of one list of one query: an array, the best first."""

    given: ClassVar[tuple[str, ...]] = ("scores",)
    returned: ClassVar[str] = "an array with a number for each of them"
    reorders: ClassVar[bool] = True  # it may

    def scale_lists(self, lists: ScoreLists) -> FloatArray:
        """(n,): the numbers of the function, list by list."""
        order = np.lexsort((lists.ranks, lists.owner))
        scaled = np.empty(len(order))
        for rows in np.split(order, lists.starts[1:]):
            given, read = lists.scores[rows], partial(_read_array, len(rows))
            scaled[rows] = self.call(f"a list of {lists.name}", given, read=read)
        return scaled


class FunctionBlend(FunctionMethod, RerankBlend):
    """A function of the fused and the rerank scores of one query's candidates.

    It gets two mappings ``{document: score}``, each the best first: displayed fused scores, and
    rerank scores on the unit scale, of those candidates that have one.
    """

    given: ClassVar[tuple[str, ...]] = ("fused", "reranked")
    returned: ClassVar[str] = SCORES

    def combine(
        self, runs: AlignedRuns, fused: Fused, rerank: FloatArray, candidates: BoolArray
    ) -> FloatArray:
        """(N,): the scores of the function; NaN of what it does not get."""
        final = np.full(len(rerank), np.nan)
        scored = candidates & ~np.isnan(rerank)
        for query, part, documents in _list_queries(runs):
            rows = np.flatnonzero(scored[part])
            if not len(rows):
                continue
            names = [documents[row] for row in rows.tolist()]
            places = fused.positions[part][rows]
            by_rerank = np.empty(len(rows), dtype=np.int64)
            by_rerank[np.lexsort((places, -rerank[part][rows]))] = np.arange(1, len(rows) + 1)
            final[part.start + rows] = self.call(
                query,
                _rank_documents(names, fused.scores[part][rows], places),
                _rank_documents(names, rerank[part][rows], by_rerank),
                read=partial(_read_scores, names),
            )
        return final


def _list_queries(runs: AlignedRuns) -> Any:  # noqa: ANN401 - an iterator of tuples
    """Each query, its slice of the candidates, and their ids."""
    for q, query in enumerate(runs.queries):
        part = slice(int(runs.offsets[q]), int(runs.offsets[q + 1]))
        documents = [runs.vocabulary[code] for code in runs.documents[part].tolist()]
        yield f"query {query!r}", part, documents


def _rank_documents(
    documents: Sequence[str], scores: FloatArray, ranks: IntArray
) -> dict[str, float]:
    """Document → score in the order of the ranks; 0 = not in the list."""
    order = np.argsort(ranks, kind="stable")[int((ranks == 0).sum()) :]
    return {documents[row]: float(scores[row]) for row in order.tolist()}


def _read_array(size: int, returned: object) -> FloatArray:
    """The numbers that a normalizer returned, one of each document of a list.

    Raises:
        UnfitValueError: They are others, or one is not finite.
    """
    values = np.asarray(returned)
    if values.shape != (size,) or values.dtype.kind not in "fiub":
        raise UnfitValueError(
            f"{size} numbers are needed, given {values.dtype} of shape {values.shape}"
        )
    for value in values[~np.isfinite(values)][:1].tolist():
        require_number(value)
    return values


def _read_scores(documents: Sequence[str], returned: object) -> list[float]:
    """The score of each document, as a function returned them.

    Raises:
        UnfitValueError: One is missing, or is no finite number, or is of a document that is not
            there.
    """
    if not isinstance(returned, Mapping):
        raise UnfitValueError(f"{{document: score}} is needed, given {type(returned).__name__}")
    strange = next((each for each in returned if each not in set(documents)), None)
    if strange is not None:
        raise UnfitValueError(f"{show_value(strange)} is in no list that it gets")
    scores = []
    for document in documents:
        if document not in returned:
            raise UnfitValueError(f"no score for {document!r}: score every document")
        try:
            scores.append(require_number(returned[document]))
        except UnfitValueError as error:
            raise UnfitValueError(f"{document!r}: {error}") from None
    return scores
