"""Objects in JSON files: queries, excerpts of documents.

Excerpts only stand beside ids on a page, so a text that cannot be read is left out.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from itertools import starmap
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from fusion_bench.config.query_types import PREDICTED_CONFIDENCE, PREDICTED_TYPE
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.records import COMPARED_FIELDS, Document, Query
from fusion_bench.errors import AlignmentError, DataError
from fusion_bench.io.held_out import find_held_out
from fusion_bench.io.raw_files import GZIP, read_text
from fusion_bench.util.files import open_regular
from fusion_bench.util.formatting import is_encodable
from fusion_bench.util.json_text import refuse_repeated_keys

#: The keys of a query that are fields of their own.
QUERY_FIELDS: Final = frozenset({"id", "_id", "text", *COMPARED_FIELDS})


def load_queries(path: Path) -> dict[str, Query]:
    """Read what is known of the queries from JSON Lines; ``_id`` is read as ``id``.

    Those that open campaigns hold out are left out.

    Raises:
        DataError: A line without an id, an id given twice, or a value of the wrong kind.
    """
    queries: dict[str, Query] = {}
    for where, item in _read_query_objects(path):
        query = parse_query(item, where)
        refuse_repeated(query.id, queries, "query", where)
        queries[query.id] = query
    if not queries:
        raise DataError(f"{path}: the file is empty: at least one query is needed")
    return find_held_out(path, queries, queries).drop_keys(queries)


def _read_query_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the objects of a queries file; an error says how queries are written."""
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
        value = item.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value <= 1):
            raise DataError(f"{where}: {key} must be between 0 and 1, given {value!r}")
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


def load_documents(path: Path) -> dict[str, Document]:
    """Read documents from JSON Lines: ``id`` (or ``_id``), ``text`` and perhaps ``title``.

    A title stands before the text with one blank between them, as BEIR's collections are read.

    Raises:
        DataError: A line without an id or a text, an id given twice, or a value that is no text.
    """
    documents: dict[str, Document] = {}
    for where, item in read_objects(path):
        given, text = item.get("id", item.get("_id")), item.get("text")
        if given in (None, "") or text is None:
            raise DataError(
                f"{where}: a document needs an 'id' and a 'text' "
                f"(found: {', '.join(item) or 'nothing'})"
            )
        name = require_text(given, "id", where)
        refuse_repeated(name, documents, "document", where)
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


def refuse_repeated(name: str, known: Collection[str], what: str, where: str) -> None:
    """Refuse an id that appears twice.

    Args:
        name: The id.
        known: Those before it.
        what: Of what it is the id: ``query``, ``document``.
        where: Prefix of a message.

    Raises:
        DataError: It is known.
    """
    if name in known:
        raise DataError(f"{where}: {what} {name!r} appears twice: keep one")


def read_objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place, ``FILE:LINE``, and the object of each line of JSON Lines that is not blank.

    Raises:
        DataError: A line that is not a JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            where = f"{path}:{number}"
            yield where, parse_object(line, where)


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


def read_items(path: Path, encoding: str | None = None) -> Iterator[JsonItem]:
    """The objects of a JSON Lines file, of a JSON document (an object, or a list), or of a folder.

    Args:
        path: The file or folder.
        encoding: Of each file; by default UTF-8, or what its first bytes say.

    Raises:
        DataError: It cannot be read, or something in it is not JSON.
    """
    if path.is_dir():
        files = sorted(
            file
            for file in path.iterdir()
            if file.name.lower().endswith(SUFFIXES) and not file.name.startswith(".")
        )
        if not files:
            raise DataError(
                f"{path}: a folder, and a file is needed, or a folder of .json files: one answer "
                "of a search engine each, named by its query's id"
            )
        names: dict[str, str] = {}
        for file in files:
            query = file.name[: file.name.lower().rindex(".json")]
            if any("\ud800" <= letter <= "\udfff" for letter in query):
                raise DataError(
                    f"{path}: {file.name}: its name, a query's id, is not UTF-8: rename it"
                )
            if query in names:
                raise DataError(
                    f"{path}: {names[query]} and {file.name} are both answers to the query "
                    f"{query!r}: keep one"
                )
            names[query] = file.name
            yield JsonItem(f"/{file.name}", _parse_document(file, read_text(file, encoding)), query)
        return
    text = read_text(path, encoding)
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
        if not isinstance(item, dict | list):
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


#: Characters of a text or title.
MAX_LENGTH = 60
#: Bytes of a documents file, unpacked, in which titles are looked for (a second or two).
MAX_BYTES = 200_000_000
#: The value of a key that may be a document's id: a text, or anything else.
ID_VALUE = re.compile(rb'"_?id"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,}\]]+))')


def shorten(text: str, length: int = MAX_LENGTH) -> str:
    """The first characters of a text in one line, with ``…`` where there are more."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[:length].rstrip()}…"


def query_excerpt(query: Query | None) -> str:
    """The beginning of a query's text; empty where it is not known."""
    return "" if query is None or query.text is None else shorten(query.text)


def read_titles(path: Path | None, documents: Collection[str]) -> dict[str, str]:
    """The titles of some documents, or the beginnings of their texts.

    Args:
        path: JSON Lines with ``id`` (or ``_id``), ``text`` and perhaps ``title``, plain or gzip;
            None = no such file. Only its first 200 MB are searched.
        documents: Ids of the documents.

    Returns:
        Document → title, without those that are not found.
    """
    return {name: shorten(title or text) for name, title, text in _read_documents(path, documents)}


def read_excerpts(
    path: Path | None, documents: Collection[str], *, length: int, limit: int
) -> dict[str, str]:
    """The titles of some documents together with the beginnings of their texts.

    Args:
        path: As for :func:`read_titles`.
        documents: Ids of the documents.
        length: Characters of each excerpt.
        limit: Characters of all excerpts; documents that come later in the file have none.

    Returns:
        Document → excerpt, without those that are not found.
    """
    excerpts: dict[str, str] = {}
    for name, title, text in _read_documents(path, documents):
        parts = (part for part in (title, text) if part)
        excerpts[name] = shorten(": ".join(parts), length)
        limit -= len(excerpts[name])
        if limit < 0:
            del excerpts[name]
            break
    return excerpts


def read_whole_texts(path: Path | None, documents: Collection[str]) -> dict[str, str]:
    """The titles and texts of some documents, however long, from the whole file.

    Args:
        path: As for :func:`read_titles`.
        documents: Ids of the documents.

    Returns:
        Document → title and text on lines of their own, without those that are not found.
    """
    return {
        name: "\n\n".join(filter(None, (title, text)))
        for name, title, text in _read_documents(path, documents, most_bytes=None)
    }


def _read_documents(
    path: Path | None, documents: Collection[str], most_bytes: int | None = MAX_BYTES
) -> Iterator[tuple[str, str, str]]:
    """Id, title and text of each of these documents that is found; each may be empty."""
    wanted = set(documents)
    if path is None or not wanted:
        return
    try:
        for line in _read_lines(path, most_bytes):
            if not _may_name(line, wanted):
                continue
            document = _parse_excerpt(line)
            if document is not None and document[0] in wanted:
                yield document
                wanted.discard(document[0])
                if not wanted:
                    return
    except (OSError, EOFError, zlib.error):
        return  # no such file, or a damaged one


def _read_lines(path: Path, most_bytes: int | None) -> Iterator[bytes]:
    """The lines of the first bytes of a file, unpacked; None = of all."""
    with open_regular(path) as file:
        packed = file.read(len(GZIP)) == GZIP
    remaining = math.inf if most_bytes is None else most_bytes
    with cast("IO[bytes]", gzip.open(path) if packed else path.open("rb")) as file:
        for line in file:
            remaining -= len(line)
            if remaining < 0:
                return
            yield line


def _may_name(line: bytes, wanted: Collection[str]) -> bool:
    """Whether the id of a line may be wanted; False only where it is not.

    Most lines of a large file are not wanted, and to parse each takes five times as long.
    """
    for match in ID_VALUE.finditer(line):
        text, other = match.groups()
        value = other if text is None else text
        is_plain = b"\\" not in text if text is not None else other.isdigit()
        if not is_plain or value.decode(errors="replace") in wanted:
            return True
    return False


def _parse_excerpt(line: bytes) -> tuple[str, str, str] | None:
    """The id, the title and the text of a document; None where the line is none."""
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(item, dict):
        return None
    name = item.get("id", item.get("_id"))
    title, text = (_read_text(item.get(key)) for key in ("title", "text"))
    return None if name is None or not (title or text) else (str(name), title, text)


def _read_text(value: object) -> str:
    """A text; empty where it is none, or cannot be written to a file."""
    return value if isinstance(value, str) and is_encodable(value) else ""
