"""The values of JSON files: one a line, one document, a folder of them; queries, documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import starmap
from pathlib import Path
from typing import Any, Final, NamedTuple

from fusion_bench.config.query_types import PREDICTED_CONFIDENCE, PREDICTED_TYPE
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import COMPARED_FIELDS, Document, Query
from fusion_bench.errors import AlignmentError, DataError
from fusion_bench.io.raw_files import read_text
from fusion_bench.util.formatting import is_encodable
from fusion_bench.util.json_text import refuse_repeated_keys

#: The keys of a query that are fields of their own.
QUERY_FIELDS: Final = frozenset({"id", "_id", "text", *COMPARED_FIELDS})


def load_queries(path: Path) -> dict[str, Query]:
    """Read what is known of the queries from JSON Lines; ``_id`` is read as ``id``.

    Raises:
        DataError: A line without an id, an id given twice, or a value of the wrong kind.
    """
    queries: dict[str, Query] = {}
    for number, item in _read_query_objects(path):
        where = f"{path}:{number}"
        query = parse_query(item, where)
        if query.id in queries:
            raise DataError(f"{where}: query {query.id!r} stands twice: keep one")
        queries[query.id] = query
    if not queries:
        raise DataError(f"{path}: the file is empty: at least one query is needed")
    return queries


def _read_query_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """As :func:`read_objects`; an array or plain text is told how queries are written."""
    is_first = True
    try:
        for row in read_objects(path):
            is_first = False
            yield row
    except DataError as error:
        read_text(path)  # a file that cannot be read is an error of its own
        if not is_first:
            raise
        raise DataError(
            f'{error}: write one JSON object a line, such as {{"id": "q1", "text": "…"}}; of a '
            "text with one query a line 'fusion-bench queries sample' makes such a file"
        ) from None


def parse_query(item: Mapping[str, Any], where: str) -> Query:
    """What is known of a query.

    Args:
        item: ``id`` (or ``_id``), and perhaps ``text``, ``type``, ``intent``, ``confidence``,
            ``group`` and ``split``, and any other field.
        where: Prefix of a message.

    Raises:
        DataError: No id, or a value of the wrong kind.
    """
    given = item.get("id", item.get("_id"))
    if given is None or given == "":
        raise DataError(f"{where}: a query needs an 'id' (found: {', '.join(item) or 'nothing'})")
    texts = {
        key: require_text(item[key], key, where)
        for key in ("text", "type", "intent", "group", "split")
        if item.get(key) is not None
    }
    for key in ("confidence", PREDICTED_CONFIDENCE):
        _check_confidence(item.get(key), key, where)
    if item.get(PREDICTED_TYPE) is not None:
        require_text(item[PREDICTED_TYPE], PREDICTED_TYPE, where)
    others = {
        key: value
        for key, value in item.items()
        if key not in QUERY_FIELDS and value not in (None, [], {})
    }
    return Query(
        id=require_text(given, "id", where),
        confidence=item.get("confidence"),
        fields={
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in others.items()
            if not isinstance(value, list | dict)
        },
        nested=frozenset(key for key, value in others.items() if isinstance(value, list | dict)),
        **texts,
    )


def _check_confidence(value: Any, key: str, where: str) -> None:  # noqa: ANN401 - JSON
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 <= value <= 1):
        raise DataError(f"{where}: {key} must be between 0 and 1, given {value!r}")


def load_documents(path: Path) -> dict[str, Document]:
    """Read documents from JSON Lines: ``id`` (or ``_id``), ``text`` and perhaps ``title``.

    A title stands before the text with one blank between them, as BEIR's collections are read.

    Raises:
        DataError: A line without an id or a text, an id given twice, or a value that is no text.
    """
    documents: dict[str, Document] = {}
    for number, item in read_objects(path):
        where = f"{path}:{number}"
        given, text = item.get("id", item.get("_id")), item.get("text")
        if given in (None, "") or text is None:
            raise DataError(
                f"{where}: a document needs an 'id' and a 'text' "
                f"(found: {', '.join(item) or 'nothing'})"
            )
        name = require_text(given, "id", where)
        if name in documents:
            raise DataError(f"{where}: document {name!r} stands twice: keep one")
        parts = [require_text(part, "text", where) for part in (item.get("title"), text) if part]
        documents[name] = Document(name, " ".join(parts))
    if not documents:
        raise DataError(f"{path}: the file is empty: at least one document is needed")
    return documents


def require_text(value: object, what: str, where: str) -> str:
    """An id or a name: text, or a whole number, which stands for its digits.

    Raises:
        DataError: It is anything else.
    """
    if isinstance(value, str | int) and not isinstance(value, bool) and is_encodable(str(value)):
        return str(value)
    raise DataError(f"{where}: {what} must be text, given {json.dumps(value, default=repr)}")


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each object of a JSON Lines file with its line number; blank lines are skipped.

    Raises:
        DataError: A line that is not a JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, parse_object(line, f"{path}:{number}")


def parse_object(text: str, where: str) -> dict[str, Any]:
    """The JSON object that a text is.

    Raises:
        DataError: It is none.
    """
    try:
        item = json.loads(text, object_pairs_hook=refuse_repeated_keys)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
        raise DataError(f"{where}: not JSON: {getattr(error, 'msg', error)}") from None
    if not isinstance(item, dict):
        raise DataError(f"{where}: a JSON object is needed, found {text.strip()[:40]}")
    return item


def load_known_queries(path: Path, qrels: Qrels) -> dict[str, Query]:
    """What is known of the judged queries, from JSON Lines.

    Raises:
        AlignmentError: No judged query is among them: ids of another kind would silently cost
            their groups, types and splits.
        DataError: A line breaks a rule.
    """
    queries = load_queries(path)
    if qrels.queries and not set(queries) & set(qrels.queries):
        raise AlignmentError(
            f"{path}: the queries and the qrels have no query in common (for example "
            f"{next(iter(queries))!r} here, {qrels.queries[0]!r} in the qrels): check that both "
            "use the same query ids"
        )
    return queries


#: What the files of a folder end with.
SUFFIXES = (".json", ".json.gz")


class JsonItem(NamedTuple):
    """One value of a JSON file.

    Attributes:
        place: Its line; or a text that follows the path in a message.
        value: An object; of a folder, any value.
        query: The query's id where the name of the file says it.
    """

    place: int | str
    value: Any
    query: str | None = None

    def locate(self, path: Path) -> str:
        """Prefix of a message about it."""
        return f"{path}:{self.place}" if isinstance(self.place, int) else f"{path}{self.place}"


def read_items(path: Path) -> Iterator[JsonItem]:
    """The objects of a JSON Lines file, of a JSON document (an object, or a list), or of a folder.

    Raises:
        DataError: It cannot be read, or something in it is not JSON.
    """
    if path.is_dir():
        yield from _read_folder(path)
        return
    text = read_text(path)
    if _is_document(text):
        yield from _list_objects(path, text)
        return
    objects = parse_together(text)
    if objects is not None:
        yield from starmap(JsonItem, enumerate(objects, start=1))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield JsonItem(number, parse_object(line, f"{path}:{number}"))


def parse_together(text: str) -> list[Any] | None:
    """The objects of lines that hold one each, parsed in a third of the time.

    None where this could accept what line by line is refused. A single object may hold everything.
    Without a list and with every end of line between two braces, an object cannot go on in the next
    line; if one line held two, there would be more objects than lines.
    """
    body = text.removesuffix("\n")
    ends = body.count("\n")
    is_regular = body.startswith("{") and body.endswith("}") and body.count("}\n{") == ends
    if not is_regular or ends == 0 or "[" in body:
        return None
    try:
        objects: list[Any] = json.loads(
            "[" + body.replace("\n", ",\n") + "]", object_pairs_hook=refuse_repeated_keys
        )
    except (DataError, ValueError, RecursionError):
        return None
    return objects if len(objects) == ends + 1 else None


def _read_folder(path: Path) -> Iterator[JsonItem]:
    """The value of each file, whose name is its query's id; hidden files are none of them."""
    files = sorted(
        file
        for file in path.iterdir()
        if file.name.lower().endswith(SUFFIXES) and not file.name.startswith(".")
    )
    if not files:
        raise DataError(
            f"{path}: a folder, and a file is needed, or a folder of .json files: one answer of a "
            "search engine each, named by its query's id"
        )
    names: dict[str, str] = {}
    for file in files:
        query = file.name[: file.name.lower().rindex(".json")]
        if any("\ud800" <= letter <= "\udfff" for letter in query):
            raise DataError(f"{path}: {file.name}: its name, a query's id, is not UTF-8: rename it")
        if query in names:
            raise DataError(
                f"{path}: {names[query]} and {file.name} are both answers to the query {query!r}: "
                "keep one"
            )
        names[query] = file.name
        yield JsonItem(f"/{file.name}", _parse_document(file, read_text(file)), query)


def _is_document(text: str) -> bool:
    """Whether a text is one JSON value, and not one a line: by its first line."""
    first, _, rest = text.lstrip().partition("\n")
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        return first.rstrip().endswith(("{", "[", ",")) or _is_json(text)
    return isinstance(value, list) and not rest.strip()


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _list_objects(path: Path, text: str) -> Iterator[JsonItem]:
    """The object that a document is, or those in its list."""
    value = _parse_document(path, text)
    if isinstance(value, dict):
        yield JsonItem("", value)
        return
    items = value if isinstance(value, list) else [value]
    for number, item in enumerate(items, start=1):
        if not isinstance(item, dict):
            shown = json.dumps(item)[:40]
            raise DataError(f"{path}: item {number}: a JSON object is needed, found {shown}")
        yield JsonItem(f": item {number}", item)


def _parse_document(path: Path, text: str) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(text, object_pairs_hook=refuse_repeated_keys)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None
