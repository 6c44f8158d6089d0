"""JSON: one row or one ranked list a line; one document; or a folder of one answer a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

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
from fusion_bench.io.layouts import (
    DISTANCE_NAMES,
    HIT_NAMES,
    Layout,
    is_distance_name,
)
from fusion_bench.io.layouts.lists import (
    NOTHING,
    Answer,
    FoundList,
    find_value,
    match_answer,
    open_envelope,
    refuse_incomplete,
)
from fusion_bench.io.raw_files import ColumnNames, Kind, RawTable, tabulate
from fusion_bench.util.formatting import is_encodable

#: One document of one query: where it stands, query, document, score or grade, rank.
Row: TypeAlias = tuple[int | str, str, str, Any, Any]

#: The usual names of the keys of a row.
ROW_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **COLUMN_NAMES,
    "score": (*COLUMN_NAMES["score"], *DISTANCE_NAMES),
}
#: Keys of the ids of the queries that a batch asked, in the order of its answers.
QUERY_LISTS: Final = ("queries", "qids", "query_ids")
#: Names of a query that are no text of it.
QUERY_IDS: Final = tuple(name for name in COLUMN_NAMES["query"] if "id" in name)
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
        names = find_columns(list(keys), kind, "", columns, known_names=ROW_NAMES)
    except DataError:
        return None  # whoever reads them one by one says where
    column = {role: [item[name] for item in objects] for role, name in names.items()}
    for ids in (column["query"], column["document"]):
        if set(map(type, ids)) != {str} or not is_encodable("".join(ids)):
            return None
    if kind == "qrels" and (None in column["value"] or "" in column["value"]):
        return None
    if None in column.get("rank", ()):
        del column["rank"]
    table = tabulate(column, [item.place for item in items], has_ranks=has_ranks)
    is_distance = kind == "run" and is_distance_name(names.get("value", ""))
    return replace(table, lower_is_better=True) if is_distance else table


@register_format("json", ".json")
@register_format("jsonl", ".jsonl", ".ndjson")
def read_table(path: Path, kind: Kind, *, has_ranks: bool, columns: ColumnNames) -> RawTable:
    """Read rows such as ``{"query": "q1", "document": "d1", "score": 0.5}``, or ranked lists.

    ``fusion_bench.io.layouts`` has the layouts of a list. The line and the suffix do not decide
    how a file is read: what is in it does.
    """
    return read_answers(path, kind, has_ranks=has_ranks, columns=columns)


def read_answers(
    path: Path,
    kind: Kind,
    *,
    has_ranks: bool,
    columns: ColumnNames,
    requests: Sequence[str] = (),
) -> RawTable:
    """Read what :func:`read_table` reads; ``requests`` are the queries of lists that name none."""
    items = list(read_items(path))
    table = read_uniform_objects(items, kind, has_ranks=has_ranks, columns=columns)
    if table is not None:
        return table
    reader = _RowReader(path, kind, columns, requests)
    rows = [row for item in items for row in reader.read_rows(item)]
    rows, notes = reader.finish(rows)
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
        lower_is_better=not is_order_only and reader.directions == {True},
        notes=notes,
    )


class _RowReader:
    """Reads the rows of JSON values.

    Attributes:
        path: Their file or folder, for messages.
        kind: What it holds.
        columns: What a key holds → its name, where it has none of the usual names; ``a.b`` is the
            key ``b`` of the object ``a``, in a list.
        bare: Query whose answer is nothing but an object of numbers → where it stands.
        directions: Whether the scores so far are distances.
    """

    def __init__(
        self, path: Path, kind: Kind, columns: ColumnNames, requests: Sequence[str] = ()
    ) -> None:
        self.path, self.kind, self.columns = path, kind, columns
        self.bare: dict[str, str] = {}
        self.directions: set[bool] = set()
        self._requests, self._asked = requests, 0
        self._hit_columns = {role: name for role, name in columns.items() if role != "query"}
        self._row_names: dict[tuple[str, ...], dict[str, str] | None] = {}
        self._hit_names: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
        self._places: dict[str, int | str] = {}  # of each query's first list
        self._joined: dict[str, None] = {}  # queries of several lists
        self._either: list[list[Any]] = []  # scores of each list that may be distances

    def finish(self, rows: list[Row]) -> tuple[list[Row], tuple[str, ...]]:
        """The rows without those of a blank grade, and what a reader of the file should know.

        Raises:
            DataError: Requests are left over, or no row has a grade.
        """
        if self._asked < len(self._requests):
            raise DataError(
                f"{self.path}: {len(self._requests)} requests are given, and the file has "
                f"{self._asked} lists without a query: give the requests of this file alone"
            )
        self._settle_direction()
        notes = []
        if self._joined:
            notes.append(
                f"{len(self._joined)} queries have several lists, such as "
                f"{next(iter(self._joined))!r}: the lists of a query are read as one, by score"
            )
        if self.kind == "run":
            return rows, tuple(notes)
        graded = [row for row in rows if row[3] not in (None, "")]
        if rows and not graded:
            raise DataError(f"{self.path}: no row has a grade: at least one is needed")
        if len(graded) < len(rows):
            count = len(rows) - len(graded)
            notes.append(f"{count} rows have a blank grade and are left out: they are unjudged")
        return graded, tuple(notes)

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

    def read_rows(self, item: JsonItem) -> Iterator[Row]:
        """The rows of a value: one, or those of its ranked lists.

        Raises:
            DataError: It has no known layout, or something is missing.
        """
        is_alone = item.query is None and isinstance(item.value, dict)
        names = self._find_row_names(item) if is_alone else None
        if names is not None:
            yield self._read_row(item, names)
            return
        where = item.locate(self.path)
        try:
            answer = self._find_answer(item)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if answer is None:
            self._refuse_unknown(open_envelope(item.value)[0], where)
        if answer.layout.refuse:
            raise DataError(f"{where}: {answer.layout.title}: {answer.layout.refuse}")
        if answer.layout.kind not in {None, self.kind}:
            raise DataError(f"{where}: {answer.layout.title}, and {NEEDS[self.kind]} needed")
        names_of_lists = self._name_lists(item, answer, where)
        self._refuse_asked_twice(names_of_lists, where)
        for query, ranked in zip(names_of_lists, answer.lists, strict=True):
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
                find_columns(keys, self.kind, where, self.columns, known_names=ROW_NAMES)
                if is_row
                else None
            )
        return self._row_names[keys]

    def _read_row(self, item: JsonItem, names: dict[str, str]) -> Row:
        where, value = item.locate(self.path), item.value
        ids = (require_text(value[names[role]], role, where) for role in ID_ROLES)
        self._note_direction(is_distance_name(names.get("value", "")), names, where)
        return item.place, *ids, *_read_numbers(value, names)

    def _note_direction(self, is_distance: bool, names: Mapping[str, str], where: str) -> None:
        """Refuse distances beside scores of which the greatest is the best."""
        if self.kind == "run" and "value" in names:
            self.directions.add(is_distance)
            if len(self.directions) > 1:
                raise DataError(
                    f"{where}: {names['value']!r}: the file has both distances and scores: keep one"
                )

    def _find_answer(self, item: JsonItem) -> Answer | None:
        """The lists of an answer, and the layout that finds them; None if no layout fits.

        Raises:
            DataError: Hits are missing.
        """
        has_query = item.query is not None
        answer = match_answer(item.value, self.kind, has_query=has_query)
        body, envelope = open_envelope(item.value)
        if answer is None and item.query is not None and body:
            answer = match_answer({item.query: body}, self.kind)
            if answer is not None:
                self.bare[item.query] = item.locate(self.path)
                return answer._replace(envelope=envelope)
        return answer

    def _name_lists(self, item: JsonItem, answer: Answer, where: str) -> list[str | None]:
        """The query of each list; None where nothing says it.

        Raises:
            DataError: A batch names no queries, or another number of them.
        """
        query, lists = self._find_query(item, answer, where), answer.lists
        if not any(ranked.number for ranked in lists):
            names = [ranked.query or self._find_inner(ranked, answer, where) for ranked in lists]
            if len(lists) == 1 and names == [None]:
                names = [query] if query is not None else self._take_requests(1) or [None]
            return names
        given = self._find_given_names(answer, where) or self._take_requests(len(lists))
        if given is None:
            names = [self._find_inner(ranked, answer, where) for ranked in lists]
            if None not in names:
                return names
            if len(lists) == 1 and query is not None:
                return [query]
        if given is None or len(given) != len(lists):
            raise DataError(
                f"{where}: a batch has {len(lists)} responses in the order of its requests and "
                'names no query: add the id of each, as in {"queries": ["q1", "q2", …], '
                '"response": …}, or give the file of the requests, as in requests: FILE (given: '
                f"{'none' if given is None else f'{len(given)} ids'})"
            )
        return [require_text(name, "query", where) for name in given]

    def _take_requests(self, count: int) -> list[Any] | None:
        """The next of the queries that were asked; None if no requests were given."""
        if not self._requests:
            return None
        start, self._asked = self._asked, self._asked + count
        return list(self._requests[start : self._asked])

    @staticmethod
    def _find_given_names(answer: Answer, where: str) -> list[Any] | None:
        """The queries of a batch that are listed beside it."""
        holders = [each for each in (answer.envelope, answer.body) if isinstance(each, dict)]
        given = {key: each[key] for each in holders for key in QUERY_LISTS if key in each}
        lists = [names for names in given.values() if isinstance(names, list)]
        if any(names != lists[0] for names in lists):
            raise DataError(
                f"{where}: {' and '.join(given)} do not name the same queries: keep one"
            )
        return lists[0] if lists else None

    def _find_inner(self, ranked: FoundList, answer: Answer, where: str) -> str | None:
        """The query that an item of a batch names itself."""
        owner = ranked.owner
        if owner is answer.body or not isinstance(owner, dict):
            return None
        found = (find_value(owner, path) for path in answer.layout.query)
        given = next((value for value in found if value is not NOTHING), None)
        if given is None:
            names = match_columns(list(owner), ("query",), where)
            given = owner[names["query"]] if names else None
        return require_text(given, "query", where) if isinstance(given, str | int) else None

    def _find_query(self, item: JsonItem, answer: Answer, where: str) -> str | None:
        """The query's id, from the file's name or the object; None if neither has it.

        Raises:
            DataError: Both have one, and they differ.
        """
        keys = list(answer.envelope)
        if item.query is not None:
            for key in QUERY_IDS:
                inner = answer.envelope.get(key, item.query)
                if isinstance(inner, str | int) and str(inner) != item.query:
                    raise DataError(
                        f"{where}: {key} {str(inner)!r} is not the name of the file, "
                        f"{item.query!r}: rename the file, or delete {key}"
                    )
            return item.query
        present = {role: name for role, name in self.columns.items() if name in keys}
        for holder in (answer.envelope, answer.body) if "query" not in present else ():
            for path in answer.layout.query:
                given = find_value(holder, path)
                if isinstance(given, str | int):
                    return require_text(given, "query", where)
        names = match_columns(keys, ("query",), where, present)
        given = answer.envelope[names["query"]] if names else None
        return require_text(given, "query", where) if isinstance(given, str | int) else None

    def _refuse_asked_twice(self, names: Sequence[str | None], where: str) -> None:
        for name, count in Counter(names).items():
            if count > 1 and name is not None:
                raise DataError(f"{where}: the query {name!r} has {count} answers: keep one")

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
            hint = self._suggest_columns(ranked, answer.envelope)
            raise DataError(
                f"{where}: the list names no query (found: {', '.join(answer.envelope)}): add it, "
                'as in {"qid": "q1", "response": {…}}, or keep one .json file a query in a folder, '
                f"named by the query's id{hint}"
            )
        is_second = self._places.setdefault(query, place) != place
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
        ids = _find_sent_ids(answer.envelope, where)
        is_indexed = bool(answer.layout.index) and "document" not in self._hit_columns
        if ids is None and is_indexed and ranked.hits:
            raise DataError(
                f"{where}: the answer names documents by index alone: wrap it with the ids that "
                f'were sent, in their order: {{"qid": {json.dumps(query or "q1")}, '
                '"ids": ["d1", "d2", …], "response": {…}}'
            )
        return ranked.hits, ids

    def _suggest_columns(self, ranked: FoundList, envelope: dict[str, Any]) -> str:
        """The ``columns`` that would read a list whose query is not known; empty = none."""
        keys = [key for key, value in envelope.items() if isinstance(value, str | int)]
        if not keys:
            return ""
        guessed = guess_columns(["query"], {}, keys)
        for hit in (ranked.hits or ())[:1]:
            guessed |= self._guess_hit_columns(hit)
        return f", or write columns: {format_columns({**self.columns, **guessed})}"

    def _refuse_unknown(self, body: Any, where: str) -> NoReturn:  # noqa: ANN401 - any JSON
        """Raise for a value that is neither a row nor of a known layout.

        Raises:
            DataError: Always.
        """
        cells = body if isinstance(body, dict) else {}
        names = [key for key, cell in cells.items() if not isinstance(cell, dict | list)]
        has_cells = len(names) > len(ID_ROLES)  # beside nested ones, such as a payload
        if isinstance(body, dict) and (has_cells or len(names) == len(cells)):
            find_columns(names, self.kind, where, self.columns, known_names=ROW_NAMES)
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
                yield require_text(hit[0], "document", where), hit[1], rank
            else:
                yield require_text(hit, "document", where), default, place

    def _expand_hits(self, hits: Sequence[Any], layout: Layout) -> list[Any]:
        """The hits with what is inside of their objects beside their own keys, as ``outer.inner``.

        A key of a score that is null in every hit is none if another key has scores.
        """
        paths = [*layout.nested, *(name for name in self._hit_columns.values() if "." in name)]
        expanded = []
        for hit in hits:
            found = ((path, find_value(hit, path)) for path in paths if isinstance(hit, dict))
            inner = {path: cell for path, cell in found if cell is not NOTHING}
            expanded.append(hit | inner if inner else hit)
        objects = [hit for hit in expanded if isinstance(hit, dict)]
        names = {
            name
            for name in layout.hit_names[VALUE_ROLES[self.kind]]
            if name in (objects[0] if objects else ())
        }
        null = {name for name in names if all(hit.get(name) is None for hit in objects)}
        if not null or null == names:
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
            document = require_text(hit[names["document"]], "document", where)
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

    def _guess_hit_columns(self, hit: object) -> dict[str, str]:
        """What a hit has no known key for → the key that may hold it."""
        if not isinstance(hit, dict):
            return {}
        roles = "document", VALUE_ROLES[self.kind]
        present = {role: name for role, name in self._hit_columns.items() if name in hit}
        given = match_columns(list(hit), roles, "", present, HIT_NAMES)
        return guess_columns([role for role in roles if role not in given], given, list(hit))

    def _find_hit_names(
        self, hit: dict[str, Any], layout: Layout, where: str, required: tuple[str, ...]
    ) -> dict[str, str]:
        """The names of the keys of a hit."""
        keys = layout.name, tuple(hit)
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
                )
            self._hit_names[keys] = names
        return self._hit_names[keys]


def _describe_keys(body: Any) -> str:  # noqa: ANN401 - any JSON
    return ", ".join(body) or "nothing" if isinstance(body, dict) else json.dumps(body)[:60]


def _find_sent_ids(envelope: dict[str, Any], where: str) -> list[Any] | None:
    """The ids of the documents that were sent to a reranker, beside its answer.

    Raises:
        DataError: One of them stands twice.
    """
    ids = envelope.get("ids")
    if ids is None and isinstance(envelope.get("documents"), list):
        sent = [find_value(document, "id") for document in envelope["documents"]]
        ids = sent if NOTHING not in sent else None
    if not isinstance(ids, list):
        return None
    for name, count in Counter(map(str, ids)).items():
        if count > 1:
            raise DataError(f"{where}: ids: {name!r} stands twice: name each document once")
    return ids


def _resolve_index(index: object, ids: Sequence[Any], where: str) -> str:
    """The document at an index of the list that was sent.

    Raises:
        DataError: The list is too short.
    """
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(ids):
        raise DataError(
            f"{where}: index {json.dumps(index)} is none of the {len(ids)} ids that were sent, "
            "counted from 0"
        )
    return require_text(ids[index], "document", where)


def _read_numbers(
    row: Mapping[str, Any], names: Mapping[str, str], place: int | None = None
) -> tuple[Any, Any]:
    """The score (or grade) and the rank of a row; without a rank, its place."""
    value = row[names["value"]] if "value" in names else None
    return value, row[names["rank"]] if "rank" in names else place
