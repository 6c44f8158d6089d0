"""Variables of the environment that have a value while something is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from threading import Lock
from types import TracebackType
from typing import Final

#: Guards the count of every variable; nothing is loaded under it, so that no import waits for it.
_COUNTING: Final = Lock()


@dataclass
class HeldVariable:
    """A variable that has a value while any thread is inside, and then what it had before.

    Attributes:
        name: Its name.
        value: The value.
        is_default: Whether a value that the user has set stays.
    """

    name: str
    value: str
    is_default: bool = False
    _inside: int = field(default=0, init=False)
    _before: str | None = field(default=None, init=False)

    def __enter__(self) -> None:
        with _COUNTING:
            if self._inside == 0:
                self._before = os.environ.get(self.name)
                if self._before is None or not self.is_default:
                    os.environ[self.name] = self.value
            self._inside += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _COUNTING:
            self._inside -= 1
            if self._inside:
                return
            if self._before is None:
                os.environ.pop(self.name, None)
            else:
                os.environ[self.name] = self._before


#: How long the threads of OpenBLAS, which numpy and scipy load, spin before they sleep; it reads
#: the variable when it is loaded. Cycles, as a power of two: a third of a millisecond, longer than
#: from one product to the next of a loop. By default it is 26: each thread spins for 20 ms after it
#: starts and after each product, which costs as much processor time as the comparison of some
#: systems on a hundred queries.
SHORT_WAITS: Final = HeldVariable("OPENBLAS_THREAD_TIMEOUT", "20", is_default=True)
#: Pydantic looks for no plugins when a model is completed.
NO_PLUGINS: Final = HeldVariable("PYDANTIC_DISABLE_PLUGINS", "__all__")
