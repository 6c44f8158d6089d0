"""Mutated lists and judgments: the fast and the plain readers agree, and so do the formats."""

import random
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from fusion_bench.data.read_options import ReadOptions
from fusion_bench.errors import FusionBenchError
from fusion_bench.io import json_objects
from fusion_bench.io.formats import json_file, text_tables
from fusion_bench.io.load_records import load_qrels, load_run
from fusion_bench.io.raw_files import Kind
from tests.attacks.mutated_tables import SUFFIXES, format_table, make_table, misspell_cell, mutate
from tests.attacks.torture import Loop, Tally

INPUTS = 250
#: Line of the first row, where it is not 1.
FIRST_LINE = {"csv": 2, "tsv": 2}
#: A number that is written with a comma.
DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
#: Begins the outcome of a file that is refused.
REFUSED = "refused "


def run_round(seed: int, folder: Path) -> Tally:
    """250 files: each has one outcome, whoever reads it and in whatever format it is written."""
    rng = random.Random(seed)
    checks = [check_formats if number % 5 == 0 else check_readers for number in range(INPUTS)]
    outcomes = [check(rng, folder) for check in checks]
    refused = sum(outcome.startswith(REFUSED) for outcome in outcomes)
    assert INPUTS // 10 < refused < INPUTS * 9 // 10, refused
    return Tally(inputs=INPUTS)


def check_readers(rng: random.Random, folder: Path) -> str:
    """A file with damaged bytes is read alike by columns and line by line."""
    table = make_table(rng)
    name = rng.choice(list(SUFFIXES))
    path = folder / f"a{SUFFIXES[name]}"
    path.write_bytes(mutate(format_table(table, name, rng), rng))
    options = ReadOptions(rank_from=rng.choice(["score", "score", "column"]))
    with only_plain_readers():
        plain = describe_file(path, table.kind, options)
    with fast_readers():
        fast = describe_file(path, table.kind, options)
    assert fast == plain, path.read_bytes()
    return plain


def check_formats(rng: random.Random, folder: Path) -> str:
    """A number is the same in every format, or refused on the same row."""
    table = misspell_cell(make_table(rng), rng)
    outcomes = {}
    for name in ("trec", "csv", "tsv", "jsonl", "parquet"):
        path = folder / f"a{SUFFIXES[name]}"
        path.write_bytes(format_table(table, name, rng))
        with fast_readers():
            outcomes[name] = describe_file(path, table.kind, ReadOptions(), name)
    if any(DECIMAL_COMMA.fullmatch(cell) for row in table.rows for cell in row):
        del outcomes["tsv"]  # between tabs a comma may stand for the decimal point
    assert len(set(outcomes.values())) == 1, (outcomes, table)
    if not outcomes["trec"].startswith(REFUSED):
        rows = rng.sample(table.rows, len(table.rows))
        path.write_bytes(format_table(table._replace(rows=rows), "parquet", rng))
        shuffled = describe_file(path, table.kind, ReadOptions())
        assert shuffled.split()[0] == outcomes["trec"].split()[0], table  # the digests
    return outcomes["trec"]


def describe_file(path: Path, kind: Kind, options: ReadOptions, name: str = "") -> str:
    """What is read, to the last bit; or why nothing is.

    Args:
        path: The file.
        kind: What it holds.
        options: How it is read.
        name: Its format, if its rows shall be named instead of its lines.
    """
    try:
        if kind == "qrels":
            return load_qrels(path).digest()
        run = load_run(path, read_options=options)
        return f"{run.digest()} {run.ranks.tolist()} {run.zero_scores}"
    except FusionBenchError as error:
        text = str(error)
        assert text.startswith(str(path)), text
        assert "\n" not in text, text
        place = re.match(r":(\d+): ", text.removeprefix(str(path)))
        if name and place is not None:
            row = int(place[1]) - FIRST_LINE.get(name, 1)
            return f"{REFUSED}row {row}: {text.removeprefix(f'{path}{place[0]}')}"
        return f"{REFUSED}{text}"


@contextmanager
def fast_readers() -> Iterator[None]:
    """Files of any size are read by columns where they can be."""
    with patch.object(text_tables, "LARGE_FILE", 1):
        yield


@contextmanager
def only_plain_readers() -> Iterator[None]:
    """Every file is read line by line, and every object by itself."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(text_tables, "LARGE_FILE", 1 << 62))
        stack.enter_context(patch.object(json_objects, "parse_together", lambda _text: None))
        stack.enter_context(patch.object(json_file, "read_uniform_objects", lambda *_, **__: None))
        yield


LOOP = Loop("mutated lists", run_round, test_rounds=2)
