"""The lists of hits in an answer, as a layout describes them; what says that hits are missing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple

from fusion_bench.data.document_rows import COLUMN_NAMES
from fusion_bench.errors import DataError
from fusion_bench.io.layouts import GENERAL, Layout, load_layouts
from fusion_bench.io.raw_files import Kind

#: Keys of an answer that is not whole, true there → what they say.
UNFINISHED: Final = {
    "timed_out": "the search timed out",
    "is_partial": "the answer is partial",
    "is_running": "the search is still running",
}
#: The same of keys that only files have been seen with.
STOPPED: Final = {
    **UNFINISHED,
    "terminated_early": "the search ended early",
    "error": "it states an error",
    "errors": "it states an error",
}
#: What parts of a search may have become of which the hits are missing.
MISSING: Final = {
    "_shards": ("a shard", ("failed",)),
    "_clusters": ("a cluster", ("skipped", "partial", "failed", "running")),
}
#: The least status of HTTP that is an error.
LEAST_ERROR: Final = 400

#: Keys around an answer as it came.
WRAPPERS: Final = ("response", "body", "result", "answer", "output", "data")
#: Keys that name a list or an answer, so that they alone are no ids of queries.
RESERVED: Final = frozenset(
    {*WRAPPERS, "hits", "results", "documents", "docs", "passages", "candidates", "matches"}
    | {"points", "ranking", "judgments", "responses"}
)

#: Keys of an export of spans, of which those of other kinds than a layout's are left out.
SPANS: Final = frozenset({"resourceSpans", "resource_spans"})

#: Keys of the ids of the queries that a batch asked, in the order of its answers.
QUERY_LISTS: Final = frozenset({"queries", "qids", "query_ids"})
#: Stands for a value that is not there.
NOTHING: Final = object()


class FoundList(NamedTuple):
    """One list of hits in an answer.

    Attributes:
        hits: Objects, pairs of document and score, or ids; None = there is none where one belongs.
        owner: The answer around it: an item of a batch, or the whole.
        query: The query's id, where a key of an object is one.
        number: Its place in a batch, from 1; 0 = it is in none.
    """

    hits: Sequence[Any] | None
    owner: Any
    query: str | None = None
    number: int = 0


def find_value(body: Any, path: str) -> Any:  # noqa: ANN401 - any JSON
    """The value at a path, ``NOTHING`` where there is none; a key may have dots itself."""
    if path == "":
        return body
    if not isinstance(body, dict):
        return NOTHING
    if path in body:
        return body[path]
    head, dot, rest = path.partition(".")
    while dot:
        if head in body and (found := find_value(body[head], rest)) is not NOTHING:
            return found
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return NOTHING


class Answer(NamedTuple):
    """An answer with the lists that its layout finds.

    Attributes:
        layout: Its row of the table.
        lists: Its lists.
        body: The answer as it came.
        envelope: The object around it, which may name its query; else itself.
    """

    layout: Layout
    lists: list[FoundList]
    body: Any
    envelope: dict[str, Any]


def open_envelope(value: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401 - any JSON
    """An answer, and the object with the id of its query."""
    if not isinstance(value, dict):
        return value, {}
    inner = value.get(WRAPPERS[0])
    return (inner if isinstance(inner, dict | list) else value), value


def match_answer(value: Any, kind: Kind, *, has_query: bool = False) -> Answer | None:  # noqa: ANN401 - any JSON
    """An answer with the layout that it fits, None if it fits none.

    Args:
        value: The answer, perhaps in an object with the id of its query.
        kind: What it is read as; a layout of the other kind fits if no other does.
        has_query: Whether the query is known, so that no key is one.

    Raises:
        DataError: Hits are missing.
    """
    body, envelope = open_envelope(value)
    layer: Any = body
    while layer is not None:
        found: tuple[Layout, list[FoundList]] | None = None
        for layout in _order_layouts(kind):
            is_by_query = layout.lists and layout.lists[0].startswith("{}")
            lists = None if has_query and is_by_query else find_lists(layout, layer)
            if lists is not None:
                found = layout, lists
                break
        is_listed = isinstance(layer, list) and not QUERY_LISTS.isdisjoint(envelope)
        if found is None or found[0].family == GENERAL:
            items = layer.get("responses") if isinstance(layer, dict) else layer
            if isinstance(items, list) and (is_listed or items is not layer):
                found = _match_batch(items, kind) or found
        is_mapping = found is not None and found[0].lists[0].startswith("{}")
        if layer is not value or not is_mapping:
            for each in (envelope, layer):
                refuse_incomplete(each, None if found is None else found[0])
        if found is not None:
            return Answer(*found, layer, envelope)
        cells = layer if isinstance(layer, dict) else {}  # a usual key may wrap the answer
        inner = (cells[key] for key in WRAPPERS if isinstance(cells.get(key), dict | list))
        layer = next(inner, None)
    return None


def _match_batch(items: list[Any], kind: Kind) -> tuple[Layout, list[FoundList]] | None:
    """The layout that each answer of a batch fits, and their lists; None if none fits one."""
    answers = [match_answer(item, kind, has_query=True) for item in items]
    layout = next((each.layout for each in answers if each is not None), None)
    if layout is None or layout.family == GENERAL:
        return None
    lists = []
    for number, (item, answer) in enumerate(zip(items, answers, strict=True), start=1):
        is_whole = answer is not None and answer.layout is layout and len(answer.lists) == 1
        hits = answer.lists[0].hits if answer is not None and is_whole else None
        lists.append(FoundList(hits, item, None, number))
    return layout, lists


@cache
def _order_layouts(kind: Kind) -> tuple[Layout, ...]:
    """The layouts of judgments first if they are wanted; those of no one product come last."""

    def rate(layout: Layout) -> tuple[bool, bool, bool]:
        is_other = layout.kind not in {None, kind}
        return layout.family == GENERAL, is_other, layout.kind != "qrels"

    return tuple(sorted(load_layouts(), key=rate))


def find_lists(layout: Layout, body: Any) -> list[FoundList] | None:  # noqa: ANN401 - any JSON
    """The lists in an answer; None if it is not of the layout."""
    if isinstance(body, dict) and layout.heads and layout.heads.isdisjoint(body):
        return None
    if not _has_all(body, layout.has) or any(_has(body, path) for path in layout.has_not):
        return None
    is_mapping = layout.lists[:1] != () and layout.lists[0].startswith("{}")
    if is_mapping and isinstance(body, dict) and body.keys() <= RESERVED:
        return None
    for path in layout.lists:
        spots = _follow([_Spot(body, body)], path.split(".") if path else [])
        found = _read_forms(layout, spots, body)
        if any(each.hits or (not layout.hit and each.hits is not None) for each in found):
            is_mapped = any(each.query is not None for each in found)
            if not is_mapped or all(each.hits is not None for each in found):
                return found
    return [] if isinstance(body, dict) and layout.heads & SPANS & body.keys() else None


class _Spot(NamedTuple):
    """What a path led to; as :class:`FoundList` otherwise."""

    value: Any
    owner: Any
    query: str | None = None
    number: int = 0


def _follow(spots: list[_Spot], steps: Sequence[str]) -> list[_Spot]:
    """What a path of a layout leads to; several values where it has a ``[]`` or a ``{}``."""
    for at, step in enumerate(steps):
        if step == "[]":
            spots = [
                spot._replace(value=item, owner=item, number=number)
                for spot in spots
                if isinstance(spot.value, list)
                for number, item in enumerate(spot.value, start=1)
            ]
        elif step == "{}":
            spots = [
                spot._replace(value=value, owner=value, query=key)
                for spot in spots
                if isinstance(spot.value, dict)
                for key, value in spot.value.items()
            ]
        elif step == "*":
            return [found for spot in spots for found in _follow_only(spot, steps[at + 1 :])]
        elif step == "@":
            spans = [(spot, nest_attributes(spot.value)) for spot in spots]
            return [
                spot._replace(value=value, owner=cells)
                for spot, cells in spans
                if (value := _find_any(cells, ".".join(steps[at + 1 :]))) is not NOTHING
            ]
        elif step == "?":
            spots = [spot._replace(value=_find_only_list(spot.value)) for spot in spots]
        else:
            spots = [spot._replace(value=_find_any(spot.value, step)) for spot in spots]
    return spots


def _follow_only(spot: _Spot, steps: Sequence[str]) -> list[_Spot]:
    """What the rest of a path leads to in the only value of an object where it leads to a list.

    Raises:
        DataError: There are several.
    """
    cells = spot.value if isinstance(spot.value, dict) else {}
    found = {
        key: _follow([spot._replace(value=cell, owner=cell)], steps) for key, cell in cells.items()
    }
    full = [
        key for key, spots in found.items() if any(isinstance(s.value, dict | list) for s in spots)
    ]
    if len(full) > 1:
        raise DataError(f"it has several lists, under {', '.join(map(repr, full))}: keep one")
    return found[full[0]] if full else []


#: The key of an attribute of an item in a list: ``retrieval.documents.0.document.id``.
ITEM_KEY: Final = re.compile(r"(.+?)\.(\d+)\.(.+)")


def nest_attributes(attributes: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    """The attributes of a span: numbered keys as lists of objects, lists in JSON text as lists.

    Args:
        attributes: An object, or a list of ``{"key": …, "value": {"stringValue": …}}``.
    """
    if isinstance(attributes, list):
        attributes = _decode_value({"kvlistValue": {"values": attributes}})
    nested: dict[str, Any] = {}
    items: dict[str, dict[int, dict[str, Any]]] = {}
    for key, cell in attributes.items() if isinstance(attributes, dict) else ():
        if match := ITEM_KEY.fullmatch(key):
            items.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = cell
        else:
            nested[key] = cell
            if isinstance(cell, str) and cell.startswith("[{"):
                with suppress(ValueError, RecursionError):
                    nested[key] = json.loads(cell)
    return nested | {key: [each[at] for at in sorted(each)] for key, each in items.items()}


def _decode_value(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The value that OpenTelemetry's JSON wraps in an object with its type."""
    kind, cell = next(iter(value.items())) if isinstance(value, dict) and value else ("", value)
    if kind not in {"arrayValue", "kvlistValue"}:
        return cell
    given = find_value(cell, "values")
    values = given if isinstance(given, list) else []
    if kind == "arrayValue":
        return [_decode_value(each) for each in values]
    return {
        str(find_value(each, "key")): _decode_value(find_value(each, "value")) for each in values
    }


def _find_any(value: Any, step: str) -> Any:  # noqa: ANN401 - any JSON
    """The value at the first key that is there, of keys between bars."""
    found = (find_value(value, key) for key in step.split("|"))
    return next((each for each in found if each is not NOTHING), NOTHING)


def _find_only_list(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The list of objects in an object, if it is the only one."""
    lists = [
        each
        for each in (value.values() if isinstance(value, dict) else ())
        if isinstance(each, list) and each and all(isinstance(hit, dict) for hit in each)
    ]
    return lists[0] if len(lists) == 1 else NOTHING


def _read_forms(layout: Layout, spots: list[_Spot], body: Any) -> list[FoundList]:  # noqa: ANN401 - any JSON
    """The hits at each place, None where they are not of the layout's form."""
    if layout.form == "columns":
        return [found for spot in spots for found in _read_columns(layout, spot)]
    if layout.form == "table":
        return [FoundList(_read_table(layout, spot.value, body), *spot[1:]) for spot in spots]
    if layout.form == "rows":
        groups: dict[str | None, list[dict[str, Any]]] = {}
        for spot in spots:
            around = spot.owner if spot.owner is not body and isinstance(spot.owner, dict) else {}
            value = [spot.value] if isinstance(spot.value, dict) else spot.value
            for row in _read_hits(layout, value) or ():
                cells = {**around, **row}
                names = [
                    find_value(cells, path) for path in (*layout.query, *COLUMN_NAMES["query"])
                ]
                name = next((each for each in names if isinstance(each, str | int)), None)
                groups.setdefault(None if name is None else str(name), []).append(cells)
        return [FoundList(rows, body, name) for name, rows in groups.items()]
    read = LIST_READERS[layout.form]
    found = [FoundList(read(layout, spot.value), *spot[1:]) for spot in spots]
    paths = [path for path in layout.query if "[]" in path]
    return [each for ranked in found for each in _repeat_list(ranked, paths)] if paths else found


def _repeat_list(ranked: FoundList, paths: Sequence[str]) -> Iterator[FoundList]:
    """The list once for each query of the first path that has some; as it is if none has."""
    start = _Spot(ranked.owner, ranked.owner)
    spots = ([spot.value for spot in _follow([start], path.split("."))] for path in paths)
    names = ([each for each in values if isinstance(each, str | int)] for values in spots)
    for name in dict.fromkeys(next(filter(None, names), [None])):
        yield ranked if name is None else ranked._replace(query=str(name))


def _read_hits(layout: Layout, value: Any) -> Sequence[Any] | None:  # noqa: ANN401 - any JSON
    if not isinstance(value, list):
        return None
    indices = [find_value(hit, layout.index) for hit in value if layout.index]
    if indices and all(isinstance(each, str) and not each.isdigit() for each in indices):
        return None  # they are ids
    hits: list[Any] = [_join_pair(hit) for hit in value] if "[1]" in layout.hit else value
    for hit in hits if layout.hit or layout.hit_not else ():
        if not _has_all(hit, layout.hit) or any(_has(hit, path) for path in layout.hit_not):
            return None
    return hits


def _join_pair(hit: Any) -> Any:  # noqa: ANN401 - any JSON
    """A pair of an object and a score as the object with the score under ``[1]``."""
    is_pair = isinstance(hit, list) and len(hit) == 2 and isinstance(hit[0], dict)
    return {**hit[0], "[1]": hit[1]} if is_pair else hit


def _has_all(value: Any, paths: tuple[str, ...]) -> bool:  # noqa: ANN401 - any JSON
    """Whether it has a value at each path; ``a|b`` is one of two."""
    return all(any(_has(value, path) for path in each.split("|")) for each in paths)


def _has(value: Any, path: str) -> bool:  # noqa: ANN401 - any JSON
    return find_value(value, path) is not NOTHING


def _read_flat(layout: Layout, value: Any) -> Sequence[Any] | None:  # noqa: ANN401 - any JSON
    """Pairs of document and score, or ids; None where there are other things."""
    if isinstance(value, dict):
        is_flat = not any(isinstance(each, dict | list) for each in value.values())
        return list(value.items()) if is_flat else None
    if isinstance(value, list):
        return None if any(isinstance(each, dict) for each in value) else value
    return [] if value is None and layout.kind == "qrels" else None


def _read_keyed(layout: Layout, value: Any) -> Sequence[Any] | None:  # noqa: ANN401 - any JSON
    """One object a hit, with the key of the document under the name ``{}``."""
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        return None
    return _read_hits(layout, [{"{}": key, **each} for key, each in value.items()])


def _read_graded(_layout: Layout, value: Any) -> Sequence[Any] | None:  # noqa: ANN401 - any JSON
    """Pairs of document and grade, from ``{grade: [ids]}``."""
    if not isinstance(value, dict) or not all(isinstance(each, list) for each in value.values()):
        return None
    return [(document, grade) for grade, ids in value.items() for document in ids]


def _read_ids(layout: Layout, value: Any) -> Sequence[Any] | None:  # noqa: ANN401 - any JSON
    """The ids in a list, and in the lists in it; None where there are other things."""
    if isinstance(value, list):
        parts = [_read_ids(layout, each) for each in value]
        return None if None in parts else [each for part in parts for each in part or ()]
    return [value] if isinstance(value, str | int) else None


LIST_READERS: Final[Mapping[str, Callable[[Layout, Any], Sequence[Any] | None]]] = {
    "hits": _read_hits,
    "flat": _read_flat,
    "keyed": _read_keyed,
    "graded": _read_graded,
    "ids": _read_ids,
}


def _read_table(layout: Layout, value: Any, body: Any) -> Sequence[Any] | None:  # noqa: ANN401 - any JSON
    """One object a row of a table, whose columns are named beside it."""
    columns = find_value(body, layout.columns)
    if not isinstance(value, list) or not isinstance(columns, list):
        return None
    names = [
        find_value(column, "name") if isinstance(column, dict) else column for column in columns
    ]
    return [dict(zip(names, row, strict=False)) for row in value if isinstance(row, list)]


def _read_columns(layout: Layout, spot: _Spot) -> Iterator[FoundList]:
    """One object a hit, of an object of parallel lists, or of lists of such lists.

    Raises:
        DataError: The lists are not of one length.
    """
    names = [*layout.document, *layout.score, *layout.distance, *layout.either]
    found = ((name, find_value(spot.value, name)) for name in names)
    columns = {name: column for name, column in found if isinstance(column, list)}
    is_named = layout.index != "" or any(name in columns for name in layout.document)
    if not columns or not is_named:
        yield FoundList(None, *spot[1:])
        return
    if len({len(column) for column in columns.values()}) > 1:
        counts = ", ".join(f"{len(column)} {name}" for name, column in columns.items())
        raise DataError(f"its parallel lists are not of one length: {counts}")
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if rows and all(isinstance(cell, list) for cell in rows[0].values()):
        for number, row in enumerate(rows, start=1):
            yield from _read_columns(layout, spot._replace(value=row, number=number))
        return
    if layout.index:
        rows = [{layout.index: place, **row} for place, row in enumerate(rows)]
    yield FoundList(rows, *spot[1:])


def refuse_incomplete(answer: Any, layout: Layout | None = None) -> None:  # noqa: ANN401 - any JSON
    """Refuse an answer that states an error, or that it is not whole.

    Raises:
        DataError: Says which.
    """
    facts = answer if isinstance(answer, dict) else {}
    marks = {**STOPPED, **(layout.incomplete if layout is not None else {})}
    flaws = [what for path, what in marks.items() if _is_marked(facts, path)]
    for key, (part, states) in MISSING.items():
        counts = facts[key] if isinstance(facts.get(key), dict) else {}
        flaws += [f"{part} {state}" for state in states if _is_set(counts.get(state))]
        total, successful = (counts.get(state) for state in ("total", "successful"))
        if isinstance(total, int) and isinstance(successful, int) and successful < total:
            flaws.append(f"{part} is missing ({successful} of {total} answered)")
    status = facts.get("status")
    if isinstance(status, int) and status >= LEAST_ERROR:
        flaws.append(f"its status is {status}")
    if flaws:
        raise DataError(f"{flaws[0]}, so that hits may be missing: ask again")


def _is_marked(facts: dict[str, Any], path: str) -> bool:
    if path.startswith("!"):
        return find_value(facts, path[1:]) is False
    return _is_set(find_value(facts, path))


def _is_set(value: object) -> bool:
    """Whether a flag is true, a count is not 0, also as text, or an object or list not empty."""
    if isinstance(value, dict | list):
        return bool(value)
    return isinstance(value, str | int | float) and str(value).lower() not in {"", "0", "false"}
