"""The loops of reading in C find what numpy finds, and touch nothing outside their buffers."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion_bench.data.packed_ids import pack
from fusion_bench.io import native, trec
from fusion_bench.io._raw_table import Kind, Rows

compiled = pytest.importorskip("fusion_bench.io._native", reason="it was not compiled here")

QUICK = settings(max_examples=150, deadline=None)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.17f}"),
    st.floats(0, 1).map(lambda x: f"{x:.19f}"),
    st.decimals(-1000, 1000, places=6).map(str),
    st.integers(-(10**20), 10**20).map(str),
    # Halfway between two floats, just above and just below it.
    st.sampled_from(["9007199254740993", "9007199254740993.001", "9007199254740992.999"]),
    st.sampled_from(["1000000000000000128", "1.00000000000000011102", "18446744073709551615"]),
    st.sampled_from(["-0", "-0.0", "00001", "5.", ".5", "+1", "1e5", "nan", "-inf", "0" * 30]),
)
IDS = st.one_of(
    st.integers(0, 30).map(str),
    st.text("ab\x7fé文", min_size=1, max_size=20),
    st.text("01", min_size=60, max_size=64),
)


def both(kind: Kind, data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Rows | None, ...]:
    """The rows by the loops in C, and by numpy."""
    found = []
    for switch in "10":
        monkeypatch.setenv("FUSION_BENCH_NATIVE", switch)
        found.append(trec._regular(kind, data))
    return tuple(found)


def same(one: Rows | None, two: Rows | None) -> bool:
    """Whether both say the same, or both leave it to the slow reader."""
    if one is None or two is None:
        return one is two
    assert isinstance(one.values, np.ndarray)
    assert isinstance(two.values, np.ndarray)
    assert one.values.dtype == two.values.dtype
    assert one.values.tobytes() == two.values.tobytes()
    assert list(one.queries) == list(two.queries)
    assert list(one.documents) == list(two.documents)
    if one.ranks is not None and two.ranks is not None:
        assert list(one.ranks()) == list(two.ranks())
    return one.lines == two.lines


@QUICK
@given(st.lists(st.tuples(IDS, IDS, NUMBERS), min_size=1, max_size=20), st.data())
def test_damaged_text_is_read_or_refused_as_by_numpy(
    rows: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    text = "".join(f"{q} Q0 {d} {n} {x} t\n" for n, (q, d, x) in enumerate(rows)).encode()
    places = st.tuples(st.integers(0, len(text)), st.integers(0, 2))
    spoilt = st.sampled_from(
        [b"", b" ", b"\t", b"\n", b"\r\n", b"\0", b"\xff", b".", b"-", b"\xa0"]
    )
    for (at, gone), new in data.draw(st.lists(st.tuples(places, spoilt), max_size=3)):
        text = text[:at] + new + text[at + gone :]
    with pytest.MonkeyPatch.context() as patch:
        assert same(*both("run", text, patch))
        assert same(*both("qrels", text, patch))


@QUICK
@given(st.lists(st.tuples(IDS, IDS, st.integers(1 - 10**18, 10**18 - 1)), min_size=1, max_size=20))
def test_judgements_are_those_of_numpy(rows: list[tuple[str, str, int]]) -> None:
    text = "".join(f"{q}\t0\t{d}\t{grade}\r\n" for q, d, grade in rows).encode()
    with pytest.MonkeyPatch.context() as patch:
        one, two = both("qrels", b"\xef\xbb\xbf" + text, patch)
    assert one is not None
    assert same(one, two)


@pytest.mark.parametrize("extra", range(0, 200, 7))
def test_lines_may_end_anywhere_in_a_block(extra: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (f"q{n // 9} Q0 {'d' * (n % 61)}{n} {n} {n / 7:.9f} t{'x' * n}\n" for n in range(400))
    text = ("".join(lines) + f"q Q0 d 1 2 {'t' * (extra + 1)}").encode()
    one, two = both("run", text, monkeypatch)
    assert one is not None
    assert same(one, two)


@settings(max_examples=300, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_are_those_of_python_to_the_last_bit(numbers: list[str]) -> None:
    text, rows = native.prepared("".join(f"q Q0 d 1 {x} t\n" for x in numbers).encode())
    found = native.regular(text, rows, 6, 4, whole=False)
    assert found is not None
    assert found.values.tobytes() == struct.pack(f"{len(numbers)}d", *map(float, numbers))


def test_few_numbers_are_left_to_python() -> None:
    rng = np.random.default_rng(5)
    numbers = [repr(x) for x in rng.random(200).tolist()]
    text, rows = native.prepared("".join(f"q Q0 d 1 {x} t\n" for x in numbers).encode())
    arrays = arguments_of_split(rows)
    found = compiled.split(text, 6, 4, *arrays)
    assert found[0] == rows
    assert found[2] <= sum(len(x) > 2 + 19 for x in numbers)


def cells(names: list[str]) -> native.Cells:
    text = " ".join(names).encode()
    widths = [len(name.encode()) for name in names]
    starts = np.cumsum([0, *(width + 1 for width in widths[:-1])]).astype(np.uint32)
    data = np.frombuffer(text, dtype=np.uint8)
    return native.Cells(data, starts, np.array(widths, dtype=np.uint8), max(widths))


@QUICK
@given(st.lists(st.lists(IDS, min_size=1, max_size=60), min_size=1, max_size=3))
def test_ids_are_numbered_as_by_numpy(tables: list[list[str]]) -> None:
    together = native.code_together([cells(names) for names in tables])
    every = sorted({name.encode() for names in tables for name in names})
    for coded, names in zip(together, tables, strict=True):
        assert [name.encode() for name in coded.whole] == every
        assert list(coded) == names
        assert [coded.whole[code] for code in coded.codes.tolist()] == names
        codes, own = coded.factorize()
        packed = pack(names)
        assert packed is not None
        expected, distinct = packed.factorize()
        np.testing.assert_array_equal(codes, expected)
        assert list(own) == list(distinct)
        assert len(coded) == len(names)
        assert list(coded[1:]) == names[1:]


def test_ids_that_no_64_bits_hold_are_sorted_too() -> None:
    rng = np.random.default_rng(1)
    names = ["".join(map(chr, row)) for row in rng.integers(33, 127, (500, 40)).tolist()]
    codes, distinct = cells(names).factorize()
    assert list(distinct) == sorted(names)
    assert [sorted(names)[code] for code in codes.tolist()] == names


def test_cells_are_ids() -> None:
    names = ["d1", "é", "d" * 64]
    ids = cells(names)
    assert len(ids) == 3
    assert [ids[n] for n in range(3)] == names
    assert list(ids) == list(ids[:]) == names
    assert ids[1:].words.tobytes() == ids.take(np.array([1, 2])).words.tobytes()
    packed = pack(names)
    assert packed is not None
    assert ids.words.tobytes() == packed.words.tobytes()


def test_the_switch_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSION_BENCH_NATIVE", "1")
    assert native.usable()
    monkeypatch.setenv("FUSION_BENCH_NATIVE", "0")
    assert not native.usable()


# ---- what does not fit is refused ----

TEXT = np.frombuffer(b"q 0 d 1\n", dtype=np.uint8)
U32, U8, I32 = np.array([4], dtype=np.uint32), np.ones(1, dtype=np.uint8), np.zeros(1, np.int32)
FAR, WIDE = np.array([8], dtype=np.uint32), np.full(1, 200, dtype=np.uint8)
I64, U64 = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.uint64)
THREE = np.zeros(3, dtype=np.int64)
LOCKED = np.zeros(1, dtype=np.uint64)
LOCKED.setflags(write=False)


def arguments_of_split(rows: int) -> tuple[Any, ...]:
    table = np.empty((rows, 3), dtype=np.int64)
    starts, widths = np.empty(rows, dtype=np.uint32), np.empty(rows, dtype=np.uint8)
    return starts, widths, np.empty(rows), table, table.copy()


SOUND: dict[str, tuple[Any, ...]] = {
    "split": (TEXT, 4, 3, U32.copy(), U8.copy(), I64.copy(), THREE, THREE.copy()),
    "pack": (TEXT, U32, U8, U64.copy()),
    "code": (((TEXT, U32, U8, I32.copy()),), U64.copy(), np.zeros(2, np.uint64), 1),
    "keys": (U64, 1, U64.copy()),
    "ranked": (U64, I32.copy(), I32.copy()),
    "recode": (I32, I32, I32.copy(), I64.copy(), I64.copy()),
}  # fmt: skip
WRONG: list[tuple[str, int, Any, type[Exception]]] = [
    ("split", 0, I64, TypeError),
    ("split", 1, 2, ValueError),
    ("split", 1, 9, ValueError),
    ("split", 2, 4, ValueError),
    ("split", 3, I32, TypeError),
    ("split", 4, np.ones(2, dtype=np.uint8), ValueError),
    ("split", 5, None, TypeError),
    ("split", 5, np.zeros(2), ValueError),
    ("split", 6, I64, ValueError),
    ("split", 7, I64, ValueError),
    ("pack", 1, FAR, IndexError),
    ("pack", 2, WIDE, IndexError),
    ("pack", 2, np.ones(2, dtype=np.uint8), ValueError),
    ("pack", 3, np.zeros(9, dtype=np.uint64), ValueError),
    ("pack", 3, LOCKED, ValueError),
    ("code", 0, (), ValueError),
    ("code", 0, (None,), TypeError),
    ("code", 0, ((TEXT,),), TypeError),
    ("code", 0, ((TEXT, FAR, U8, I32.copy()),), IndexError),
    ("code", 0, ((TEXT, U32, WIDE, I32.copy()),), IndexError),
    ("code", 0, ((TEXT, U32, U8, np.zeros(2, np.int32)),), ValueError),
    ("code", 1, np.zeros(2, dtype=np.uint64), ValueError),
    ("code", 2, U64.copy(), ValueError),
    ("code", 2, np.zeros(3, dtype=np.uint64), ValueError),
    ("code", 3, 9, ValueError),
    ("keys", 0, np.zeros(2, dtype=np.uint64), ValueError),
    ("keys", 1, 0, ValueError),
    ("keys", 2, I64, TypeError),
    ("ranked", 1, np.zeros(2, np.int32), ValueError),
    ("ranked", 2, I64, TypeError),
    ("recode", 0, np.array([1], dtype=np.int32), IndexError),
    ("recode", 1, np.array([-1], dtype=np.int32), IndexError),
    ("recode", 2, np.zeros(2, np.int32), ValueError),
    ("recode", 3, np.zeros(2, np.int64), ValueError),
    ("recode", 4, np.zeros(2, np.int64), ValueError),
]


@pytest.mark.parametrize(("name", "at", "value", "error"), WRONG)
def test_a_buffer_that_does_not_fit_is_refused(
    name: str, at: int, value: object, error: type[Exception]
) -> None:
    given, function = list(SOUND[name]), getattr(compiled, name)
    function(*given)
    given[at] = value
    with pytest.raises(error):
        function(*given)


def test_a_sorted_key_that_points_beyond_the_ids_is_refused() -> None:
    keys = np.array([0, 1, 3], dtype=np.uint64)
    with pytest.raises(IndexError):
        compiled.ranked(keys, np.zeros(3, np.int32), np.zeros(3, np.int32))


def test_a_text_of_more_lines_than_there_is_room_for_is_left_alone() -> None:
    text = np.frombuffer(b"q 0 d 1\nq 0 e 1\n", dtype=np.uint8)
    assert compiled.split(text, 4, 3, *SOUND["split"][3:]) is None
    assert compiled.lines(text) == (2, 0)
    with pytest.raises(TypeError):
        compiled.lines(I64)
