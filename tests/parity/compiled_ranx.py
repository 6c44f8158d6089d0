"""Renew the numbers of the compiled ranx: ``python -m tests.parity.compiled_ranx``.

Compiling takes half a minute of every run of the tests, and its result changes with ranx alone.
"""

import json
from importlib.metadata import version

from tests.parity.test_ranx import COMPILED, Ranx, fuse_and_normalize, make_runs


def main() -> None:
    """Compile ranx, and store what it gives."""
    numbers = fuse_and_normalize(Ranx(), make_runs())
    assert numbers["compiled"], "NUMBA_DISABLE_JIT is set"
    record = {"ranx": version("ranx"), **numbers}
    COMPILED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
