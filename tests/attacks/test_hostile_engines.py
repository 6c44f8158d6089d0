"""Every client asks a server that echoes its key, field by field: nothing that is left shows it."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attacks.hostile_engines import (
    CLIENTS,
    FORMS,
    NAME,
    Client,
    Place,
    ask_server,
    assert_hidden,
    list_places,
    plant,
)
from tests.attacks.http_echoes import KEY
from tests.engines.connectors.loopback import Json


def list_answers(client: Client, root: Path) -> list[tuple[str, Place]]:
    """The places of every kind of answer that an honest server gives to a client."""
    places: dict[tuple[str, Place], None] = {}

    def note(path: str, answer: Json) -> Json:
        places.update(dict.fromkeys((path, place) for place in list_places(answer)))
        return answer

    root.mkdir()
    said = ask_server(client, root, KEY, note)
    assert said.startswith("0"), said
    return list(places)


@pytest.mark.parametrize("name", CLIENTS)
def test_no_field_of_an_answer_shows_the_key(name: str, tmp_path: Path) -> None:
    """Each value has another form, one after the other; then the names of all fields at once."""
    client, forms = CLIENTS[name], itertools.cycle(FORMS.values())
    places = list_answers(client, tmp_path / "honest")
    values = [[place] for place in places if place[1][-1:] != (NAME,)]
    names = [place for place in places if place[1][-1:] == (NAME,)]
    # The innermost first: what leads to them still has its name.
    for number, together in enumerate([*values, sorted(names, key=lambda place: -len(place[1]))]):
        form = next(forms)
        root = tmp_path / str(number)
        root.mkdir()
        said = ask_server(client, root, KEY, planting(together, f"it is {form(KEY)} today"))
        assert_hidden(said, KEY, form(KEY))


def planting(places: list[tuple[str, Place]], echo: str) -> Callable[[str, Json], Json]:
    """Puts an echo at places of the answers to some paths."""

    def change(asked: str, answer: Json) -> Json:
        for path, place in places:
            if path == asked:
                answer = plant(answer, place, echo)
        return answer

    return change
