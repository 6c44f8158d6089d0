"""JSON: one row or one ranked list a line; one document; or a folder of one answer a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from fusion_bench.data.document_rows import COLUMN_NAMES, ID_ROLES, VALUE_ROLES
from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import (
    find_columns,
    format_columns,
    guess_columns,
    match_columns,
    register_format,
)
from fusion_bench.io.json_objects import JsonItem, read_items, require_text
from fusion_bench.io.raw_files import ColumnNames, Kind, RawTable, tabulate
from fusion_bench.util.formatting import is_encodable

#: One document of one query: where it stands, query, document, score or grade, rank.
Row: TypeAlias = tuple[int | str, str, str, Any, Any]

#: Keys that can only be a document's id.
DOCUMENT_IDS: Final = {"id", "_id", *COLUMN_NAMES["document"]} - {"document", "doc"}


#: Keys of an answer that is not whole, true there → what they say.
UNFINISHED: Final = {
    "timed_out": "the search timed out",
    "is_partial": "the answer is partial",
    "is_running": "the search is still running",
}
#: What parts of a search may have become of which the hits are missing.
MISSING: Final = {
    "_shards": ("a shard", ("failed",)),
    "_clusters": ("a cluster", ("skipped", "partial", "failed", "running")),
}


class RankedList(NamedTuple):
    """The documents of one query, best first.

    Attributes:
        hits: Objects, pairs of document and score, or ids.
        query: The query's id; None = the object around the list, or the file's name, says it.
    """

    hits: Sequence[Any]
    query: str | None = None


def _refuse_incomplete(answer: Any) -> None:  # noqa: ANN401 - any JSON
    """Refuse an answer that states an error, or that it is not whole.

    Raises:
        DataError: Says which.
    """
    facts = answer if isinstance(answer, dict) else {}
    flaws = [what for key, what in UNFINISHED.items() if _is_set(facts.get(key))]
    for key, (part, states) in MISSING.items():
        counts = facts[key] if isinstance(facts.get(key), dict) else {}
        flaws += [f"{part} {state}" for state in states if _is_set(counts.get(state))]
    flaws += [f"it states an {key[:5]}" for key in ("error", "errors") if facts.get(key)]
    if flaws:
        raise DataError(f"{flaws[0]}, so that hits may be missing: ask again")


def _is_set(value: object) -> bool:
    """Whether a flag is true, or a count is not 0, also as text; no list or object is one."""
    return isinstance(value, str | int | float) and str(value).lower() not in {"", "0", "false"}


def _find_indexed(body: Any) -> list[Any] | None:  # noqa: ANN401 - any JSON
    """The hits of a reranker's answer, which name their documents by index; None = no answer."""
    lists = [body.get(key) for key in ("results", "data")] if isinstance(body, dict) else [body]
    return next(
        (hits for hits in lists if isinstance(hits, list) and hits and all(map(_is_indexed, hits))),
        None,
    )


def _is_indexed(hit: object) -> bool:
    """Whether a hit has an index and no id; its ``document`` may be the text."""
    return isinstance(hit, dict) and "index" in hit and not DOCUMENT_IDS & hit.keys()


#: Keys that name a list of documents, in the answers of search libraries and services.
HIT_KEYS: Final = (
    "hits",
    "results",
    "documents",
    "docs",
    "passages",
    "candidates",
    "matches",
    "points",
    "ranking",
    "judgments",
    "data",
)


def _find_nested_hits(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The list under a usual key; or under another, if it is the only list of objects."""
    if _find_indexed(body) is not None:
        return None
    if isinstance(body, dict):
        named = [body[key] for key in HIT_KEYS if isinstance(body.get(key), list)]
        lists = named or _find_only_list(body)
        if not lists:
            return None
        return [RankedList(lists[0])]
    return [RankedList(body)] if isinstance(body, list) else None


def _find_only_list(body: dict[str, Any]) -> list[list[Any]]:
    """The list of objects beside something that may name the query, if it is the only one."""
    lists = [
        value
        for key, value in body.items()
        if key != "result"  # see _find_points
        and isinstance(value, list)
        and value
        and all(isinstance(hit, dict) for hit in value)
    ]
    is_labeled = any(isinstance(value, str | int) for value in body.values())
    return lists if is_labeled and len(lists) == 1 else []


def _find_points(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The points of an answer of Qdrant.

    Source: https://api.qdrant.tech/api-reference/search/query-points
    """
    result = body.get("result") if isinstance(body, dict) else None
    points = result.get("points") if isinstance(result, dict) else result
    return [RankedList(points)] if isinstance(points, list) else None


def _find_mapped_queries(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """One list for each query."""
    if not isinstance(body, dict) or not body or set(body) <= {*HIT_KEYS, "result"}:
        return None
    lists = [_list_pairs(documents) for documents in body.values()]
    if None in lists:
        return None
    return [RankedList(pairs or [], query) for query, pairs in zip(body, lists, strict=True)]


def _list_pairs(documents: object) -> list[Any] | None:
    """Pairs of document and score; None where there are other things."""
    if isinstance(documents, dict):
        is_flat = not any(isinstance(value, dict | list) for value in documents.values())
        return list(documents.items()) if is_flat else None
    if isinstance(documents, list):
        is_flat = not any(isinstance(value, dict) for value in documents)
        return documents if is_flat else None
    return None


def _find_rerank_results(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The results of a reranker's answer, whose documents are indices.

    Cohere and Jina name the list ``results``, Voyage and Mixedbread ``data``; Hugging Face's Text
    Embeddings Inference answers with the bare list. The index counts the documents that were sent,
    from 0. Source: https://docs.cohere.com/reference/rerank
    """
    hits = _find_indexed(body)
    return None if hits is None else [RankedList(hits)]


def _find_search_hits(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The hits of an answer of Elasticsearch or OpenSearch.

    Source: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-search
    """
    outer = body.get("hits") if isinstance(body, dict) else None
    hits = outer.get("hits") if isinstance(outer, dict) else None
    return [RankedList(hits)] if isinstance(hits, list) else None


#: Each returns the lists in an object of its shape, and None for an object of another. An object is
#: of one shape at most: a new one must refuse what the others take.
SHAPES: Final[tuple[Callable[[Any], list[RankedList] | None], ...]] = (
    _find_nested_hits,
    _find_points,
    _find_mapped_queries,
    _find_rerank_results,
    _find_search_hits,
)


def _find_lists(body: Any) -> list[RankedList] | None:  # noqa: ANN401 - any JSON
    """The ranked lists in a JSON value; None if it has no known shape."""
    for shape in SHAPES:
        lists = shape(body)
        if lists is not None:
            return lists
    return None


#: Inside a list an ``id`` can only be the document's.
HIT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **COLUMN_NAMES,
    "document": (*COLUMN_NAMES["document"], "id", "_id"),
    "score": (*COLUMN_NAMES["score"], "_score"),
}


def _flatten(hit: dict[str, Any]) -> dict[str, Any]:
    """The object with the keys of its objects beside its own, as ``outer.inner``."""
    nested = {
        f"{outer}.{inner}": value
        for outer, values in hit.items()
        if isinstance(values, dict)
        for inner, value in values.items()
    }
    return hit | nested


def _resolve_index(index: object, ids: object, where: str) -> str:
    """The document at an index of the list that was sent.

    Raises:
        DataError: The list is not there, or too short.
    """
    sent = ids if isinstance(ids, list) else []
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(sent):
        raise DataError(
            f"{where}: index {json.dumps(index)} is none of the {len(sent)} ids that were sent, "
            "counted from 0"
        )
    return require_text(sent[index], "document", where)


def read_uniform_objects(
    items: Sequence[JsonItem], kind: Kind, *, has_ranks: bool, columns: ColumnNames
) -> RawTable | None:
    """The rows of objects with the same keys and textual ids; None = they are not like that.

    Args:
        items: Each with its line.
        kind: What they hold.
        has_ranks: Whether the rank column is needed.
        columns: The file's own names, where it declares them.
    """
    if not items or items[0].query is not None:
        return None  # the name of the file says the query
    objects: list[dict[str, Any]] = [item.value for item in items]
    keys = objects[0].keys()
    if any(value.keys() != keys for value in objects):
        return None
    try:
        names = find_columns(list(keys), kind, "", columns)
    except DataError:
        return None  # whoever reads them one by one says where
    column = {role: [item[name] for item in objects] for role, name in names.items()}
    for ids in (column["query"], column["document"]):
        if set(map(type, ids)) != {str} or not is_encodable("".join(ids)):
            return None
    if None in column.get("rank", ()):
        del column["rank"]
    return tabulate(column, [item.place for item in items], has_ranks=has_ranks)


#: The key of an answer that stands inside an object with the id of its query.
ENVELOPE = "response"


@register_format("json", ".json")
@register_format("jsonl", ".jsonl", ".ndjson")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read rows such as ``{"query": "q1", "document": "d1", "score": 0.5}``, or ranked lists.

    ``SHAPES`` has the shapes of a list. The line and the suffix do not decide how a file is read:
    what stands in it does.
    """
    items = [part for item in read_items(path) for part in _split_responses(item, path)]
    table = read_uniform_objects(items, kind, has_ranks=has_ranks, columns=columns)
    if table is not None:
        return table
    reader = _RowReader(path, kind, columns)
    rows = [row for item in items for row in reader.read_rows(item)]
    lines, queries, documents, values, ranks = map(
        list, zip(*rows, strict=True) if rows else [()] * 5
    )
    has_order = bool(rows) and None not in ranks
    is_order_only = has_order and all(value is None for value in values)
    return RawTable(
        queries=queries,
        documents=documents,
        values=None if is_order_only else values,
        ranks=ranks if has_order and (has_ranks or is_order_only) else None,
        lines=lines,
        bare=reader.bare,
    )


#: Keys of the ids of the queries that a multi-search asked, in the order of its answers.
QUERY_LISTS: Final = ("queries", "qids", "query_ids")


def _split_responses(item: JsonItem, path: Path) -> Iterator[JsonItem]:
    """The answers of a multi-search of Elasticsearch or OpenSearch, each with its query.

    Source: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-msearch

    Raises:
        DataError: Nothing says which queries they answer.
    """
    body, envelope = _open_envelope(item.value)
    responses = body.get("responses") if isinstance(body, dict) else None
    if not isinstance(responses, list):
        yield item
        return
    where = item.locate(path)
    names = next((envelope[key] for key in QUERY_LISTS if key in envelope), None)
    if not isinstance(names, list) or len(names) != len(responses):
        given = f"{len(names)} ids" if isinstance(names, list) else "none"
        raise DataError(
            f"{where}: a multi-search has {len(responses)} responses in the order of its requests "
            f'and names no query: add the id of each, as in {{"queries": ["q1", "q2", …], '
            f'"responses": […]}} (given: {given})'
        )
    for number, (name, response) in enumerate(zip(names, responses, strict=True), start=1):
        place = f":{item.place}" if isinstance(item.place, int) else item.place
        query = require_text(name, "query", where)
        yield JsonItem(f"{place}: response {number}", response, query)


class _RowReader:
    """Reads the rows of JSON values.

    Attributes:
        path: Their file or folder, for messages.
        kind: What it holds.
        columns: What a key holds → its name, where it has none of the usual names; ``a.b`` is the
            key ``b`` of the object ``a``, in a list.
        bare: Query whose answer is nothing but an object of numbers → where it stands.
    """

    def __init__(self, path: Path, kind: Kind, columns: ColumnNames) -> None:
        self.path, self.kind, self.columns = path, kind, columns
        self.bare: dict[str, str] = {}
        self._hit_columns = {role: name for role, name in columns.items() if role != "query"}
        self._row_names: dict[tuple[str, ...], dict[str, str] | None] = {}
        self._hit_names: dict[tuple[str, ...], dict[str, str]] = {}
        self._places: dict[str, int | str] = {}  # of each query's first list

    def read_rows(self, item: JsonItem) -> Iterator[Row]:
        """The rows of a value: one, or those of its ranked lists.

        Raises:
            DataError: It has no known shape, or something is missing.
        """
        names = self._find_row_names(item) if item.query is None else None
        if names is not None:
            yield self._read_row(item, names)
            return
        where = item.locate(self.path)
        body, envelope = _open_envelope(item.value)
        try:
            if item.query is not None or not _is_query_mapping(item.value):
                _refuse_incomplete(envelope)
                _refuse_incomplete(body)
            lists = _find_lists(body)
            if lists is None and item.query is not None:
                lists = _find_lists({item.query: body})
                self.bare[item.query] = where
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if lists is None:
            self._refuse_unknown(body, where)
        query = self._find_query(item, envelope, where)
        for ranked in lists or ():
            yield from self._read_list(item, ranked, query, envelope)

    def _find_row_names(self, item: JsonItem) -> dict[str, str] | None:
        """The names of a row's keys; None if the object is not a row."""
        keys = tuple(item.value)
        if keys not in self._row_names:
            roles = *ID_ROLES, VALUE_ROLES[self.kind], "rank"
            where = item.locate(self.path)
            present = {role: name for role, name in self.columns.items() if name in keys}
            is_row = match_columns(keys, roles, where, present).keys() >= set(ID_ROLES)
            self._row_names[keys] = (
                find_columns(keys, self.kind, where, self.columns) if is_row else None
            )
        return self._row_names[keys]

    def _read_row(self, item: JsonItem, names: dict[str, str]) -> Row:
        where, value = item.locate(self.path), item.value
        ids = (require_text(value[names[role]], role, where) for role in ID_ROLES)
        return item.place, *ids, *_read_numbers(value, names)

    def _read_list(
        self, item: JsonItem, ranked: RankedList, query: str | None, envelope: dict[str, Any]
    ) -> Iterator[Row]:
        name, place, ids = query, item.place, envelope.get("ids")
        _refuse_repeated_ids(ids, item.locate(self.path))
        if ranked.query is not None:
            line = f":{place}" if isinstance(place, int) else place
            name, place = ranked.query, f"{line}: query {ranked.query!r}"
        where = item._replace(place=place).locate(self.path)
        if not isinstance(ids, list) and any(map(self._has_index, ranked.hits)):
            raise DataError(
                f"{where}: the answer names documents by index alone: wrap it with the ids that "
                f'were sent, in their order: {{"qid": {json.dumps(name or "q1")}, '
                '"ids": ["d1", "d2", …], "response": {…}}'
            )
        if name is None:
            hint = self._suggest_columns(ranked, envelope)
            raise DataError(
                f"{where}: the list names no query (found: {', '.join(envelope)}): add it, as in "
                '{"qid": "q1", "response": {…}}, or keep one .json file a query in a folder, '
                f"named by the query's id{hint}"
            )
        is_second = self._places.setdefault(name, place) != place
        for hit in self._read_hits(ranked.hits, ids, where):
            if is_second and hit[1] is None:
                raise DataError(
                    f"{where}: a second list of the query {name!r}, without scores that would "
                    "order both: join them, the best first"
                )
            yield place, name, *hit

    def _suggest_columns(self, ranked: RankedList, envelope: dict[str, Any]) -> str:
        """The ``columns`` that would read a list whose query is not known; empty = none."""
        keys = [key for key, value in envelope.items() if isinstance(value, str | int)]
        if not keys:
            return ""
        guessed = guess_columns(["query"], {}, keys)
        for hit in ranked.hits[:1]:
            guessed |= self._guess_hit_columns(hit)
        return f", or write columns: {format_columns({**self.columns, **guessed})}"

    def _find_query(self, item: JsonItem, envelope: dict[str, Any], where: str) -> str | None:
        """The query's id, from the file's name or the object; None if neither has it."""
        if item.query is not None:
            return item.query
        keys = list(envelope)
        present = {role: name for role, name in self.columns.items() if name in keys}
        names = match_columns(keys, ("query",), where, present)
        given = envelope[names["query"]] if names else None
        return require_text(given, "query", where) if isinstance(given, str | int) else None

    def _refuse_unknown(self, body: Any, where: str) -> None:  # noqa: ANN401 - any JSON
        """Raise for a value that is neither a row nor of a known shape.

        Raises:
            DataError: Always.
        """
        cells = body if isinstance(body, dict) else {}
        names = [key for key, cell in cells.items() if not isinstance(cell, dict | list)]
        has_cells = len(names) > len(ID_ROLES)  # beside nested ones, such as a payload
        if isinstance(body, dict) and (has_cells or len(names) == len(cells)):
            find_columns(names, self.kind, where, self.columns)  # a row: says what it lacks
        value = VALUE_ROLES[self.kind]
        contents = ", ".join(body) if isinstance(body, dict) else json.dumps(body)[:60]
        raise DataError(
            f"{where}: JSON of no known shape (found: {contents}): a row is "
            f'{{"query": …, "document": …, "{value}": …}}, a list is '
            f'{{"qid": …, "hits": [{{"id": …, "{value}": …}}]}}; docs/reference/formats.md has '
            "the others"
        )

    def _read_hits(
        self, hits: Sequence[Any], ids: object, where: str
    ) -> Iterator[tuple[str, Any, Any]]:
        """Document, score (or grade) and rank of each hit; None for what is not known.

        Args:
            hits: The list, best first.
            ids: What the indices of a reranker's answer count: the documents that were sent.
            where: Prefix of a message.

        Raises:
            DataError: A hit names no document, or has no value.
        """
        for place, hit in enumerate(hits, start=1):
            if isinstance(hit, dict):
                yield self._read_hit(hit, place, ids, where)
            elif isinstance(hit, list | tuple):
                if len(hit) != 2:
                    raise DataError(
                        f"{where}: {json.dumps(hit)[:60]} is no pair of document and score"
                    )
                rank = None if isinstance(hit, tuple) else place
                yield require_text(hit[0], "document", where), hit[1], rank
            else:
                yield require_text(hit, "document", where), None, place

    def _read_hit(
        self, hit: dict[str, Any], place: int, ids: object, where: str
    ) -> tuple[str, Any, Any]:
        if any("." in name for name in self._hit_columns.values()):
            hit = _flatten(hit)
        if self._has_index(hit):
            document = _resolve_index(hit["index"], ids, where)
            names = self._find_hit_names(hit, where, ())
        else:
            names = self._find_hit_names(hit, where, ("document",))
            document = require_text(hit[names["document"]], "document", where)
        return document, *_read_numbers(hit, names, place)

    def _has_index(self, hit: object) -> bool:
        """Whether a hit names its document by the place in the list that was sent."""
        return _is_indexed(hit) and "document" not in self._hit_columns

    def _guess_hit_columns(self, hit: object) -> dict[str, str]:
        """What a hit has no known key for → the key that may hold it."""
        if not isinstance(hit, dict):
            return {}
        roles = "document", VALUE_ROLES[self.kind]
        present = {role: name for role, name in self._hit_columns.items() if name in hit}
        given = match_columns(list(hit), roles, "", present, HIT_NAMES)
        return guess_columns([role for role in roles if role not in given], given, list(hit))

    def _find_hit_names(
        self, hit: dict[str, Any], where: str, required: tuple[str, ...]
    ) -> dict[str, str]:
        """The names of the keys of a hit."""
        keys = tuple(hit)
        if keys not in self._hit_names:
            self._hit_names[keys] = find_columns(
                keys,
                self.kind,
                where,
                self._hit_columns,
                known_names=HIT_NAMES,
                required=required,
                is_ordered=True,
            )
        return self._hit_names[keys]


def _is_query_mapping(value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Whether each key may be a query's id, ``error`` too: below each stand its documents."""
    return isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())


def _refuse_repeated_ids(ids: object, where: str) -> None:
    names = [str(name) for name in ids] if isinstance(ids, list) else []
    for name, count in Counter(names).items():
        if count > 1:
            raise DataError(f"{where}: ids: {name!r} stands twice: name each document once")


def _open_envelope(value: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401 - any JSON
    """An answer, and the object with the id of its query."""
    if not isinstance(value, dict):
        return value, {}
    if isinstance(value.get(ENVELOPE), dict | list):
        return value[ENVELOPE], value
    return value, value


def _read_numbers(
    row: Mapping[str, Any], names: Mapping[str, str], place: int | None = None
) -> tuple[Any, Any]:
    """The score (or grade) and the rank of a row; without a rank, its place."""
    value = row[names["value"]] if "value" in names else None
    return value, row[names["rank"]] if "rank" in names else place
