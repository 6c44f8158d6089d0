"""A process with workers gets a signal at a random moment; its workers end with it."""

import random
import signal
import time
from pathlib import Path

from tests.attacks.runner import LIMIT
from tests.attacks.sessions import start_session
from tests.attacks.torture import Loop, Tally

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
#: Signals in a round.
KILLS = 4
#: Seconds until the signal: from the parent's first instruction until its workers are busy.
LONGEST = 0.8


def run_round(seed: int, folder: Path) -> Tally:
    """A few parents: nobody holds their output once they have ended."""
    rng = random.Random(seed)
    for _ in range(KILLS):
        number = rng.choice(SIGNALS)
        count = str(rng.randint(1, 3))
        parent = start_session(("-m", "tests.attacks.killed_parent", count), folder)
        time.sleep(rng.uniform(0.0, LONGEST))
        parent.send_signal(number)
        # Workers have the parent's standard error, so this waits for all of them.
        out, err = parent.communicate(timeout=LIMIT)
        assert out == ""
        assert "Traceback" not in err, err
        if parent.returncode != -number:
            assert (parent.returncode, err) == (143, "error: terminated\n")
    return Tally(kills=KILLS)


LOOP = Loop("killed parents", run_round)
