"""Engines and models echo the key in fields of their answers, in any form and any part of it."""

import random
import string
from pathlib import Path

from tests.attacks.hostile_engines import (
    CLIENTS,
    FORMS,
    PIECE,
    ask_server,
    assert_hidden,
    list_places,
    plant,
)
from tests.attacks.torture import Loop, Tally
from tests.engines.connectors.loopback import Json

INPUTS = 10
LETTERS = string.ascii_letters + string.digits + "-_.+/"
LONGEST_KEY = 60
#: What may stand before and after an echo.
AROUND = ("", " ", "key=", "it is ", "\n", "\u200b", '"', "<b>")


def run_round(seed: int, folder: Path) -> Tally:
    """Ten commands: what each prints, logs and writes shows neither the key nor its echo."""
    rng = random.Random(seed)
    for number in range(INPUTS):
        key = "".join(rng.choices(LETTERS, k=rng.randint(PIECE, LONGEST_KEY)))
        size = rng.choice((len(key), rng.randint(PIECE, len(key))))
        start = rng.randrange(len(key) - size + 1)
        piece, form = key[start : start + size], rng.choice([*FORMS])
        if sum(map(str.isalnum, piece)) < PIECE and form == "spaced":
            form = "plain"  # what stands between letters is left out, and few letters are chance
        echo = FORMS[form](piece)
        text = f"{rng.choice(AROUND)}{echo}{rng.choice(AROUND)}"
        client = CLIENTS[rng.choice([*CLIENTS])]
        share = rng.choice((0.02, 0.1, 0.5))

        def change(_: str, answer: Json, text: str = text, share: float = share) -> Json:
            # The innermost first: what leads to them still has its name.
            for place in sorted(list_places(answer), key=len, reverse=True):
                if rng.random() < share:
                    answer = plant(answer, place, text)
            return answer

        root = folder / str(number)
        root.mkdir()
        assert_hidden(ask_server(client, root, key, change), key, echo)
    return Tally(inputs=INPUTS)


LOOP = Loop("hostile engines", run_round)
