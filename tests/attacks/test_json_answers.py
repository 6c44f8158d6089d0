"""Every client gets JSON of every type where its server has another one: no traceback."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.attacks.hostile_engines import (
    CLIENTS,
    Client,
    Place,
    ask_server,
    plant,
)
from tests.engines.connectors.loopback import Json

#: One value of each type, and what is on the edges of the types.
VALUES: tuple[Json, ...] = (
    *(None, True, 0, -1, 10**29, 1.5, 1e300),
    *("", "text", [], [None], [[]], [{}], {}, {"a": None}, {"": {}}),
)
#: Values that stand for a whole answer, and places in it, for each client.
WHOLE, PARTS = 4, 8


def list_holders(answer: Json, place: Place = ()) -> Iterator[Place]:
    """Every place in an answer, the whole answer first; of a list the first item is for all."""
    yield place
    rows = answer.items() if isinstance(answer, dict) else enumerate(answer[:1])
    for key, value in rows if isinstance(answer, dict | list) else ():
        yield from list_holders(value, (*place, key))


def find_places(client: Client, root: Path) -> list[tuple[str, Place]]:
    """The places of every kind of answer that an honest server gives to a client."""
    places: dict[tuple[str, Place], None] = {}

    def note(path: str, answer: Json) -> Json:
        places.update(dict.fromkeys((path, place) for place in list_holders(answer)))
        return answer

    root.mkdir()
    ask_server(client, root, "k" * 20, note)
    return list(places)


@pytest.mark.parametrize("name", CLIENTS)
def test_no_type_of_json_is_a_traceback(name: str, tmp_path: Path) -> None:
    """The answers to a path are a few values in turn, and so are some places in them.

    Which ones goes on from client to client: over all of them each value is every kind of answer.
    """
    client, turns = CLIENTS[name], itertools.cycle(VALUES)
    for _ in range(list(CLIENTS).index(name) * 5):
        next(turns)
    places = find_places(client, tmp_path / "honest")
    whole = [(path, (), next(turns)) for path, place in places if not place for _ in range(WHOLE)]
    inner = [each for each in places if each[1]]
    parts = [(*each, next(turns)) for each in inner[:: 1 + len(inner) // PARTS]]
    for number, (path, place, value) in enumerate(whole + parts):
        root = tmp_path / str(number)
        root.mkdir()
        ended = ask_server(client, root, "k" * 20, planting(path, place, value))
        assert ended.partition("\n")[0] in {"0", "2", "4"}, (path, place, value, ended)
        assert "this is a bug" not in ended, (path, place, value, ended)


def planting(path: str, place: Place, value: Json) -> Callable[[str, Json], Json]:
    """Puts a value at a place of the answers to a path."""
    return lambda asked, answer: plant(answer, place, value) if asked == path else answer
