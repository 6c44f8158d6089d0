"""JSON: one row or one ranked list a line; one document; or a folder of one answer a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from fusion_bench.data.document_rows import (
    COLUMN_NAMES,
    ID_ROLES,
    VALUE_ROLES,
    is_distance,
)
from fusion_bench.errors import DataError
from fusion_bench.io.formats._base import (
    Attempt,
    complete_table,
    find_columns,
    list_guesses,
    match_columns,
    propose_columns,
    register_format,
    settle_rivals,
)
from fusion_bench.io.formats._json_queries import QueryNamer
from fusion_bench.io.json_objects import JsonItem, read_items, require_text
from fusion_bench.io.layouts import GENERAL, HIT_NAMES, Layout
from fusion_bench.io.layouts.lists import (
    NOTHING,
    Answer,
    FoundList,
    find_value,
    match_answer,
    open_envelope,
    refuse_incomplete,
)
from fusion_bench.io.raw_files import ColumnNames, Kind, RawTable, drop_unjudged, tabulate
from fusion_bench.util.formatting import is_encodable

#: One document of one query: where it stands, query, document, score or grade, rank.
Row: TypeAlias = tuple[int | str, str, str, Any, Any]

#: The family of rerankers: documents numbered from 0 are indices of those that were sent.
RERANKERS: Final = "rerankers"
#: The family of traces, in which a query may be searched again.
TRACES: Final = "traces"
#: What a key of a hit of no one product may hold → its names.
KEY_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **COLUMN_NAMES,
    "document": (*COLUMN_NAMES["document"], "id", "_id"),
    "score": (*COLUMN_NAMES["score"], "_score"),
}
#: Words of the longest id; more are the text of a document.
MOST_WORDS: Final = 12
#: What a reader of either kind needs.
NEEDS: Final = {"run": "a ranked list is", "qrels": "judgments are"}


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
    keys = objects[0].keys() if isinstance(objects[0], dict) else None
    if keys is None or any(
        not isinstance(value, dict) or value.keys() != keys for value in objects
    ):
        return None
    try:
        names = find_columns(list(keys), kind, "", columns)
        read = partial(_list_cells, objects)
        notes = settle_rivals(list(keys), names, kind, "", columns, read)
    except DataError:
        return None  # whoever reads them one by one says where
    column = {role: [item[name] for item in objects] for role, name in names.items()}
    for ids in (column["query"], column["document"]):
        if set(map(type, ids)) != {str} or not is_encodable("".join(ids)):
            return None
    if None in column.get("rank", ()):
        del column["rank"]
    table = tabulate(column, [item.place for item in items], has_ranks=has_ranks)
    with suppress(DataError):  # as above
        return complete_table(table, kind, "", names, notes)
    return None


@register_format("json", ".json")
@register_format("jsonl", ".jsonl", ".ndjson")
def read_table(
    path: Path,
    kind: Kind,
    *,
    has_ranks: bool,
    columns: ColumnNames,
    requests: Sequence[str] = (),
    encoding: str | None = None,
) -> RawTable:
    """Read rows such as ``{"query": "q1", "document": "d1", "score": 0.5}``, or ranked lists.

    ``fusion_bench.io.layouts`` has the layouts of a list. The line and the suffix do not decide
    how a file is read: what is in it does. ``requests`` are the queries of the lists that name
    none, in their order.
    """
    items = list(read_items(path, encoding))

    def read(columns: ColumnNames) -> RawTable:
        table = read_uniform_objects(items, kind, has_ranks=has_ranks, columns=columns)
        if table is not None:
            return table
        reader = _RowReader(path, kind, columns, read, requests)
        return reader.read_table(items, has_ranks=has_ranks)

    return read(columns)


class _RowReader:
    """Reads the rows of JSON values.

    Attributes:
        path: Their file or folder, for messages.
        kind: What it holds.
        columns: What a key holds → its name, where it has none of the usual names; ``a.b`` is the
            key ``b`` of the object ``a``, in a list.
        attempt: Reads the file by other columns.
        namer: Finds the query of each list.
        bare: Query whose answer is nothing but an object of numbers → where it stands.
        directions: Whether the scores so far are distances.
    """

    def __init__(
        self,
        path: Path,
        kind: Kind,
        columns: ColumnNames,
        attempt: Attempt,
        requests: Sequence[str],
    ) -> None:
        self.path, self.kind, self.columns, self.attempt = path, kind, columns, attempt
        self.bare: dict[str, str] = {}
        self.directions: set[bool] = set()
        self.namer = QueryNamer(columns, requests)
        self._hit_columns = {role: name for role, name in columns.items() if role != "query"}
        self._row_names: dict[tuple[str, ...], dict[str, str] | None] = {}
        self._objects: dict[
            tuple[str, ...], list[dict[str, Any]]
        ] = {}  # rows or hits by their keys
        self._hit_names: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
        self._places: dict[str, int | str] = {}  # of each query's first list
        self._notes: list[str] = []
        self._joined: dict[str, None] = {}  # queries of several lists
        self._either: list[list[Any]] = []  # scores of each list that may be distances

    def read_table(self, items: Sequence[JsonItem], *, has_ranks: bool) -> RawTable:
        """The rows of all items, without those of a blank grade.

        Raises:
            DataError: An item cannot be read, requests are left over, or no row has a grade.
        """
        rows = [row for item in items for row in self._read_rows(item)]
        self.namer.check_requests(self.path)
        self._settle_direction()
        for keys, objects in self._objects.items():
            names = self._row_names.get(keys) or self._hit_names[GENERAL, keys]
            self._notes += settle_rivals(
                keys,
                names,
                self.kind,
                str(self.path),
                self.columns,
                partial(_list_cells, objects),
                KEY_NAMES if "query" not in names else COLUMN_NAMES,
            )
        if self._joined:
            self._notes.append(
                f"{len(self._joined)} queries have several lists, such as "
                f"{next(iter(self._joined))!r}: the lists of a query are read as one, by score"
            )
        lines, queries, documents, values, ranks = map(
            list, zip(*rows, strict=True) if rows else [()] * 5
        )
        has_order = bool(rows) and None not in ranks
        is_run = self.kind == "run"
        is_order_only = is_run and has_order and all(value is None for value in values)
        table = RawTable(
            queries=queries,
            documents=documents,
            values=None if is_order_only else values,
            ranks=ranks if has_order and (has_ranks or is_order_only) else None,
            lines=lines,
            bare=self.bare,
            lower_is_better=not is_order_only and self.directions == {True},
            notes=tuple(dict.fromkeys(self._notes)),
        )
        return drop_unjudged(table, str(self.path)) if self.kind == "qrels" else table

    def _settle_direction(self) -> None:
        """Find by the order of hits whether scores are distances, where their name does not say it.

        Raises:
            DataError: The lists are in no order.
        """
        try:
            lists = [np.diff(np.asarray(values, dtype=float)) for values in self._either if values]
        except (TypeError, ValueError):
            return  # whoever makes a run of them says which is no number
        is_rising = all((steps >= 0).all() for steps in lists)
        is_falling = all((steps <= 0).all() for steps in lists)
        if not is_rising and not is_falling:
            raise DataError(
                f"{self.path}: the scores may be distances, and neither rise nor fall in each "
                "list: write them in the order of the engine, the best first"
            )
        if lists:
            self.directions.add(not is_falling)

    def _read_rows(self, item: JsonItem) -> Iterator[Row]:
        """The rows of a value: one, or those of its ranked lists.

        Raises:
            DataError: It has no known layout, or something is missing.
        """
        is_alone = item.query is None and isinstance(item.value, dict)
        names = self._find_row_names(item) if is_alone else None
        if names is not None:
            where, value = item.locate(self.path), item.value
            ids = (require_text(value[names[role]], role, where) for role in ID_ROLES)
            self._note_direction(is_distance(names.get("value", "")), names, where)
            self._objects.setdefault(tuple(value), []).append(value)
            yield (item.place, *ids, *_read_numbers(value, names))
            return
        where = item.locate(self.path)
        body, envelope = open_envelope(item.value)
        try:
            answer = match_answer(item.value, self.kind, has_query=item.query is not None)
            if answer is None and item.query is not None and body:
                bare = match_answer({item.query: body}, self.kind)
                if bare is not None:
                    self.bare[item.query] = where
                    answer = bare._replace(envelope=envelope)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if answer is None:
            self._refuse_unknown(body, where)
        if answer.layout.refuse:
            raise DataError(f"{where}: {answer.layout.title}: {answer.layout.refuse}")
        if answer.layout.kind not in {None, self.kind}:
            raise DataError(f"{where}: {answer.layout.title}, and {NEEDS[self.kind]} needed")
        queries = self.namer.name_lists(answer, item.query, where)
        for query, ranked in zip(queries, answer.lists, strict=True):
            yield from self._read_list(item, ranked, query, answer)

    def _find_row_names(self, item: JsonItem) -> dict[str, str] | None:
        """The names of a row's keys; None if the object is not a row."""
        keys = tuple(item.value)
        if keys not in self._row_names:
            roles = *ID_ROLES, VALUE_ROLES[self.kind], "rank"
            where = item.locate(self.path)
            present = {role: name for role, name in self.columns.items() if name in keys}
            is_row = match_columns(keys, roles, where, present).keys() >= set(ID_ROLES)
            self._row_names[keys] = (
                find_columns(keys, self.kind, where, self.columns, attempt=self.attempt)
                if is_row
                else None
            )
        return self._row_names[keys]

    def _note_direction(self, is_distance: bool, names: Mapping[str, str], where: str) -> None:
        """Refuse distances beside scores of which the greatest is the best."""
        if self.kind == "run" and "value" in names:
            self.directions.add(is_distance)
            if len(self.directions) > 1:
                raise DataError(
                    f"{where}: {names['value']!r}: the file has both distances and scores: keep one"
                )

    def _read_list(
        self, item: JsonItem, ranked: FoundList, query: str | None, answer: Answer
    ) -> Iterator[Row]:
        place = item.place
        line = f":{place}" if isinstance(place, int) else place
        if ranked.number:
            place = f"{line}: response {ranked.number}"
        elif ranked.query is not None:
            place = f"{line}: query {ranked.query!r}"
        where = item._replace(place=place).locate(self.path)
        hits, ids = self._check_list(ranked, query, answer, where)
        if query is None:
            hint = self._propose_query(ranked, answer.envelope)
            raise DataError(
                f"{where}: the list names no query (found: {', '.join(answer.envelope)}): add it, "
                'as in {"qid": "q1", "response": {…}}, or keep one .json file a query in a folder, '
                f"named by the query's id{hint}"
            )
        is_second = self._places.setdefault(query, place) != place
        if is_second and answer.layout.family == TRACES:
            raise DataError(f"{where}: the query {query!r} has two spans with lists: keep one")
        if is_second:
            self._joined[query] = None
        for hit in self._read_hits(hits, ids, answer.layout, where):
            if is_second and hit[1] is None:
                raise DataError(
                    f"{where}: a second list of the query {query!r}, without scores that would "
                    "order both: join them, the best first"
                )
            yield place, query, *hit

    def _check_list(
        self, ranked: FoundList, query: str | None, answer: Answer, where: str
    ) -> tuple[Sequence[Any], list[Any] | None]:
        """The hits of a list, and the ids that were sent to a reranker; None if there are none.

        Raises:
            DataError: An answer of a batch is not whole, has no list, or needs those ids.
        """
        if ranked.number:
            try:
                refuse_incomplete(ranked.owner, answer.layout)
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
        if ranked.hits is None:
            raise DataError(f"{where}: no list of hits (found: {_describe_keys(ranked.owner)})")
        holders = [ranked.owner] if ranked.number else []
        ids = _find_sent_ids([*holders, answer.envelope], ranked.number, where)
        is_indexed = bool(answer.layout.index) and "document" not in self._hit_columns
        paths = answer.layout.document[:1] if answer.layout.family == RERANKERS else ()
        given = [find_value(hit, path) for hit in ranked.hits for path in paths]
        is_counted = all(type(each) is int for each in given) and sorted(given) == [
            *range(len(given))
        ]
        if ids is None and ranked.hits and (is_indexed or (given and is_counted)):
            raise DataError(
                f"{where}: the answer names documents by index alone: wrap it with the ids that "
                f'were sent, in their order: {{"qid": {json.dumps(query or "q1")}, '
                '"ids": ["d1", "d2", …], "response": {…}}'
            )
        return ranked.hits, ids

    def _propose_query(self, ranked: FoundList, envelope: dict[str, Any]) -> str:
        """The ``columns`` that read a list whose query is not known; empty = none do."""
        keys = [key for key, value in envelope.items() if isinstance(value, str | int)]
        hit = next(iter(ranked.hits or ()), None)
        names = list(hit) if isinstance(hit, dict) else []
        roles = "document", VALUE_ROLES[self.kind]
        known = {role: name for role, name in self._hit_columns.items() if name in names}
        given = match_columns(names, roles, "", known, HIT_NAMES)
        missing = [role for role in roles if role not in given] if names else []
        guesses = (
            {**self.columns, **query, **{role: inner[role] for role in inner if role not in given}}
            for query in (list_guesses(["query"], {}, keys) if keys else ())
            for inner in (list_guesses(missing, given, names) if missing else [{}])
        )
        hint = propose_columns(guesses, self.attempt, self.kind, "")
        return f", or {hint}" if hint else ""

    def _refuse_unknown(self, body: Any, where: str) -> NoReturn:  # noqa: ANN401 - any JSON
        """Raise for a value that is neither a row nor of a known layout.

        Raises:
            DataError: Always.
        """
        cells = body if isinstance(body, dict) else {}
        names = [key for key, cell in cells.items() if not isinstance(cell, dict | list)]
        has_cells = len(names) > len(ID_ROLES)  # beside nested ones, such as a payload
        if isinstance(body, dict) and (has_cells or len(names) == len(cells)):
            find_columns(names, self.kind, where, self.columns, attempt=self.attempt)
        value = VALUE_ROLES[self.kind]
        raise DataError(
            f"{where}: JSON of no known layout (found: {_describe_keys(body)}): a row is "
            f'{{"query": …, "document": …, "{value}": …}}, a list is '
            f'{{"qid": …, "hits": [{{"id": …, "{value}": …}}]}}; "fusion-bench formats" lists the '
            "others"
        )

    def _read_hits(
        self, hits: Sequence[Any], ids: Sequence[Any] | None, layout: Layout, where: str
    ) -> Iterator[tuple[str, Any, Any]]:
        """Document, score (or grade) and rank of each hit; None for what is not known.

        Args:
            hits: The list, best first.
            ids: What the indices of a reranker's answer count: the documents that were sent.
            layout: The layout of the answer.
            where: Prefix of a message.

        Raises:
            DataError: A hit names no document, or has no value.
        """
        default = 1 if layout.binary and self.kind == "qrels" else None
        self._either.append([])
        for place, hit in enumerate(self._expand_hits(hits, layout), start=1):
            if isinstance(hit, dict):
                document, value, rank = self._read_hit(hit, place, ids, layout, where)
                yield document, default if value is None else value, rank
            elif isinstance(hit, list | tuple):
                if len(hit) != 2:
                    raise DataError(
                        f"{where}: {json.dumps(hit)[:60]} is no pair of document and score"
                    )
                rank = None if isinstance(hit, tuple) else place
                yield _require_id(hit[0], where), hit[1], rank
            else:
                yield _require_id(hit, where), default, place

    def _expand_hits(self, hits: Sequence[Any], layout: Layout) -> list[Any]:
        """The hits with what is inside of their objects beside their own keys, as ``outer.inner``.

        A key of an id or a score that is null in every hit is none if another key has values, or
        the hits are in their order.
        """
        paths = [*layout.nested, *(name for name in self._hit_columns.values() if "." in name)]
        expanded = []
        for hit in hits:
            found = ((path, find_value(hit, path)) for path in paths if isinstance(hit, dict))
            inner = {path: cell for path, cell in found if cell is not NOTHING}
            expanded.append(hit | inner if inner else hit)
        objects = [hit for hit in expanded if isinstance(hit, dict)]
        null: set[str] = set()
        for role in ("document", VALUE_ROLES[self.kind]):
            names = {name for name in layout.hit_names[role] if objects and name in objects[0]}
            empty = {name for name in names if all(hit.get(name) is None for hit in objects)}
            if empty != names or (layout.ordered and role != "document"):
                null |= empty
        if not null:
            return expanded
        return [
            {key: cell for key, cell in hit.items() if key not in null}
            if isinstance(hit, dict)
            else hit
            for hit in expanded
        ]

    def _read_hit(
        self,
        hit: dict[str, Any],
        place: int,
        ids: Sequence[Any] | None,
        layout: Layout,
        where: str,
    ) -> tuple[str, Any, Any]:
        if layout.index and "document" not in self._hit_columns:
            document = _resolve_index(find_value(hit, layout.index), ids or (), where)
            names = self._find_hit_names(hit, layout, where, ())
        else:
            names = self._find_hit_names(hit, layout, where, ("document",))
            document = _require_id(hit[names["document"]], where)
            if ids is not None and "document" not in self._hit_columns:
                document = _match_sent_id(hit[names["document"]], ids, where)
        if layout.family == GENERAL:
            self._objects.setdefault(tuple(hit), []).append(hit)
        value, rank = _read_numbers(hit, names, place)
        if value is None or self.kind == "qrels":
            return document, value, rank
        if names["value"] in layout.either:
            self._either[-1].append(value)
        else:
            self._note_direction(layout.is_distance(names["value"]), names, where)
        for score, reason in layout.refuse_scores.items():
            if value == float(score):
                raise DataError(f"{where}: score {value}: {reason}")
        return document, value, rank

    def _find_hit_names(
        self, hit: dict[str, Any], layout: Layout, where: str, required: tuple[str, ...]
    ) -> dict[str, str]:
        """The names of the keys of a hit."""
        keys = layout.family if layout.family == GENERAL else layout.name, tuple(hit)
        if keys not in self._hit_names:
            roles = (*required, VALUE_ROLES[self.kind], "rank")
            given = match_columns(keys[1], roles, where, self._hit_columns, layout.hit_names)
            is_enough = layout.ordered if self.kind == "run" else layout.binary
            if is_enough and given.keys() >= {*required}:
                value = VALUE_ROLES[self.kind]
                names = {"value" if role == value else role: name for role, name in given.items()}
            else:
                names = find_columns(
                    keys[1],
                    self.kind,
                    where,
                    self._hit_columns,
                    known_names=layout.hit_names,
                    required=required,
                    is_ordered=True,
                    attempt=self.attempt,
                )
            self._hit_names[keys] = names
        return self._hit_names[keys]


def _require_id(value: object, where: str) -> str:
    """A document's id.

    Raises:
        DataError: It is none, or it is the text of a document.
    """
    document = require_text(value, "document", where)
    if len(document.split()) > MOST_WORDS:
        raise DataError(
            f"{where}: {document[:40] + '…'!r} is a text, and a document's id is needed: write the "
            "id of each document"
        )
    return document


def _list_cells(objects: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [each[name] for each in objects]


def _describe_keys(body: Any) -> str:  # noqa: ANN401 - any JSON
    return ", ".join(body) or "nothing" if isinstance(body, dict) else json.dumps(body)[:60]


def _find_sent_ids(holders: Sequence[Any], number: int, where: str) -> list[Any] | None:
    """The ids of the documents that were sent to a reranker, beside its answer.

    A batch has them in each answer, or a list of such lists beside all.

    Raises:
        DataError: One of them appears twice.
    """
    found = [holder["ids"] for holder in holders if isinstance(holder, dict) and "ids" in holder]
    ids = found[0] if found else None
    documents = holders[-1].get("documents")
    if ids is None and isinstance(documents, list):
        sent = [find_value(document, "id") for document in documents]
        ids = None if NOTHING in sent or None in sent else sent
    if number and isinstance(ids, list) and len(ids) >= number and isinstance(ids[0], list):
        ids = ids[number - 1]
    if not isinstance(ids, list) or any(isinstance(each, list) for each in ids):
        return None
    for name, count in Counter(map(str, ids)).items():
        if count > 1:
            raise DataError(f"{where}: ids: {name!r} appears twice: name each document once")
    return ids


def _match_sent_id(given: Any, ids: Sequence[Any], where: str) -> str:  # noqa: ANN401 - any JSON
    """One of the ids that were sent; a whole number that is none of them is an index.

    Raises:
        DataError: It is neither, or may be both.
    """
    is_id = given in ids or str(given) in map(str, ids)
    if isinstance(given, int) and 0 <= given < len(ids):
        if is_id and str(ids[given]) != str(given):
            raise DataError(
                f"{where}: {given} may be one of the ids that were sent, or an index of them: "
                "remove 'ids', or name the key 'index'"
            )
        return _resolve_index(given, ids, where)
    if not is_id:
        raise DataError(
            f"{where}: document {json.dumps(given)} is not one of the {len(ids)} ids that were sent"
        )
    return str(given)


def _resolve_index(index: object, ids: Sequence[Any], where: str) -> str:
    """The document at an index of the list that was sent.

    Raises:
        DataError: The list is too short.
    """
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(ids):
        raise DataError(
            f"{where}: index {json.dumps(index)} is not one of the {len(ids)} ids that were sent, "
            "counted from 0"
        )
    return require_text(ids[index], "document", where)


def _read_numbers(
    row: Mapping[str, Any], names: Mapping[str, str], place: int | None = None
) -> tuple[Any, Any]:
    """The score (or grade) and the rank of a row; without a rank, its place."""
    value = row[names["value"]] if "value" in names else None
    return value, row[names["rank"]] if "rank" in names else place
