"""The values of a JSON file: one a line, one document, or one document a file of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from fusion_bench.errors import DataError
from fusion_bench.io.file_bytes import read_text
from fusion_bench.io.json_objects import parse_object
from fusion_bench.util.repeated_keys import refuse_repeated_keys

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
