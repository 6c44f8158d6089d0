"""``fusion-bench``, which gets a signal when it first imports a module.

``python -m tests.attacks.interrupted_import SIGNAL MODULE ARGUMENT…``
"""

import os
import sys
from importlib.abc import MetaPathFinder


class SignalFinder(MetaPathFinder):
    """Sends this process a signal when a module is looked for; finds none."""

    def __init__(self, number: int, module: str) -> None:
        self._number, self._module = number, module

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self._module:
            sys.meta_path.remove(self)
            # Dataclasses and named tuples run code in strings while they are imported.
            names = {"kill": os.kill, "process": os.getpid(), "number": self._number}
            exec("kill(process, number)", names)  # noqa: S102


if __name__ == "__main__":
    number, module, *arguments = sys.argv[1:]
    sys.meta_path.insert(0, SignalFinder(int(number), module))
    sys.argv = ["fusion-bench", *arguments]
    from fusion_bench.__main__ import run

    sys.exit(run())
