"""The lists of all sources for one query: as handed over, or from retrievers, asked at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError
from fusion_bench.live.hits import Hit, check_scores, read_hits
from fusion_bench.util.calls.user_code import await_contained, call_function

log = logging.getLogger("fusion_bench.live")

#: Takes the query's text and returns its list; may be a coroutine function.
Retriever: TypeAlias = Callable[[str], Any]
#: A list in a form that ``read_hits`` takes, or a retriever.
Source: TypeAlias = Iterable[Any] | Mapping[str, float] | Retriever


@dataclass(frozen=True)
class GatheredLists:
    """The lists of one query.

    Attributes:
        hits: By name; empty where a retriever failed.
        failures: Name of a retriever that failed → what happened.
    """

    hits: Mapping[str, list[Hit]]
    failures: Mapping[str, str]


async def gather_lists(
    sources: Mapping[str, Source],
    query: str,
    *,
    strict: bool,
    spaces: Mapping[str, ScoreSpace],
) -> GatheredLists:
    """Ask all retrievers at once, and read what was handed over.

    Args:
        sources: By name.
        query: The query's text.
        strict: Whether a retriever that fails is an error; else its list is empty.
        spaces: Score space of each rerank list, which its scores have to lie in.

    Raises:
        DataError: A list that was handed over breaks a rule, or a retriever failed.
    """
    asked = {name: source for name, source in sources.items() if callable(source)}
    hits = {name: _read_list(sources[name], name, spaces) for name in sources if name not in asked}
    calls = (
        await_contained(_ask_retriever(name, source, query, spaces))
        for name, source in asked.items()
    )
    answers = await asyncio.gather(*calls, return_exceptions=True)
    failures = {}
    for name, answer in zip(asked, answers, strict=True):
        if isinstance(answer, asyncio.CancelledError | KeyboardInterrupt):
            raise answer
        if isinstance(answer, BaseException):
            problem = f"{type(answer).__name__}: {answer}"
            if strict:
                raise DataError(f"retriever {name!r} failed: {problem}") from answer
            log.warning("retriever %r failed: %s", name, problem)
            failures[name] = problem
            hits[name] = []
        else:
            hits[name] = answer
    return GatheredLists({name: hits[name] for name in sources}, failures)


def _read_list(given: object, name: str, spaces: Mapping[str, ScoreSpace]) -> list[Hit]:
    hits = read_hits(given, name)
    if name in spaces:
        check_scores(hits, name, spaces[name])
    return hits


async def _ask_retriever(
    name: str, retriever: Retriever, query: str, spaces: Mapping[str, ScoreSpace]
) -> list[Hit]:
    answer = await call_function(retriever, query)
    return _read_list(answer, name, spaces)
