"""Give the lines of a ledger of version 1 their digests: ``python -m …renew_ledger looks.jsonl``.

Such a line cannot be checked: look first whether the file is as it was committed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from fusion_bench.errors import DataError, FusionBenchError
from fusion_bench.tune.looks.ledger import Look, format_look, is_undigested_look, read_looks
from fusion_bench.util.files.atomic_files import write_atomic
from fusion_bench.util.formatting import pluralize
from fusion_bench.util.os_errors import explain_error


def renew_ledger(path: Path) -> int:
    """Rewrite a ledger; lines that have a digest stay as they are.

    Returns:
        How many lines were renewed.

    Raises:
        FusionBenchError: A line is no look, or the file cannot be read or written.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        old = [number for number, line in enumerate(lines) if is_undigested_look(line)]
        for number in old:
            record = {**json.loads(lines[number]), "version": 2}
            lines[number] = format_look(Look.model_validate_json(json.dumps(record))).rstrip("\n")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a ledger of looks: {explain_error(error)}") from None
    write_atomic(path, "\n".join(lines).encode())
    read_looks(path)
    return len(old)


def main(arguments: Sequence[str]) -> int:
    """Renew the ledgers that are named; 2 = one cannot be renewed."""
    try:
        for name in arguments:
            sys.stdout.write(f"{name}: {pluralize(renew_ledger(Path(name)), 'line')} renewed\n")
    except FusionBenchError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
