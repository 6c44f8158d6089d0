"""The fast way through a TREC file gives what the slow one gives, to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusion_bench.data.aligned_runs import align
from fusion_bench.data.records import Qrels, Reading, Run
from fusion_bench.errors import DataError
from fusion_bench.io import _spans, load_qrels, load_run, trec

IDS = st.one_of(
    st.sampled_from(
        ["NaN", "007", "7", "1e5", "null", '"a"', "a,b", "#1", "é", "文書🙂", "-", "'"]
    ),
    st.text(st.characters(exclude_categories=("Z", "C")), min_size=1, max_size=20),
    st.integers(0, 30).map(str),
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(0, 40).map(lambda x: f"{x:.6f}"),
    st.decimals(-1000, 1000, places=4).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["-0.0", "1e5", "5e-324", "9007199254740993", "5.", ".5", "+1", "1_0", "٣"]),
    st.sampled_from(["2.2250738585072011e-308", "0.1000000000000000055511151231257827", "1E-7"]),
    st.sampled_from(["12345678", "00000001", "8.5e+1", "1234567.8", "1.2345678", "123456789"]),
)
LINES = st.lists(st.tuples(IDS, IDS, NUMBERS), min_size=1, max_size=30)
SPOILT = st.sampled_from(["", "x", "1.2.3", "-", ".", "nan", "inf", "--1", "1-", "1/2", "1:"])
QUICK = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150
)


def slow_run(path: Path, reading: Reading | None = None) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "_regular", lambda *_: None)
        return load_run(path, reading=reading)


def slow_qrels(path: Path) -> Qrels:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "_regular", lambda *_: None)
        return load_qrels(path)


def same(one: object, two: object) -> None:
    """Equal in every field, arrays to the last bit."""
    assert type(one) is type(two)
    for name, value in vars(one).items():
        other = vars(two)[name]
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype, name
            assert value.shape == other.shape, name
            assert value.tobytes() == other.tobytes(), name
        elif name == "vocabulary":
            assert tuple(value) == tuple(other)
        else:
            assert value == other, name


def write(path: Path, lines: list[tuple[str, str, str]], blank: str = " ") -> Path:
    rows = (blank.join([q, "Q0", d, str(n), s, "t"]) for n, (q, d, s) in enumerate(lines))
    path.write_text("\n".join(rows) + "\n", encoding="utf-8", newline="")
    return path


@QUICK
@given(lines=LINES, blank=st.sampled_from(" \t"), rank_from=st.sampled_from(["score", "column"]))
def test_a_run_is_the_same(
    lines: list[tuple[str, str, str]], blank: str, rank_from: str, tmp_path: Path
) -> None:
    reading = Reading(rank_from, on_duplicate="best_rank")  # type: ignore[arg-type]
    path = write(tmp_path / "a.trec", lines, blank)
    same(load_run(path, reading=reading), slow_run(path, reading))
    assert load_run(path, reading=reading).digest() == slow_run(path, reading).digest()


@QUICK
@given(lines=LINES, spoilt=st.tuples(IDS, IDS, SPOILT), at=st.integers(0, 30))
def test_an_error_is_the_same(
    lines: list[tuple[str, str, str]], spoilt: tuple[str, str, str], at: int, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.trec", [*lines[:at], spoilt, *lines[at:]])
    messages = []
    for load in (load_run, slow_run):
        with pytest.raises(DataError) as caught:
            load(path)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@QUICK
@given(
    grades=st.dictionaries(st.tuples(IDS, IDS), st.integers(-3, 10**12), min_size=1),
    one=LINES,
    two=LINES,
)
def test_aligned_runs_are_the_same(
    grades: dict[tuple[str, str], int],
    one: list[tuple[str, str, str]],
    two: list[tuple[str, str, str]],
    tmp_path: Path,
) -> None:
    judged = tmp_path / "q.txt"
    rows = (f"{q} 0 {d} {grade}\n" for (q, d), grade in grades.items())
    judged.write_text("".join(rows), encoding="utf-8", newline="")
    query = next(iter(grades))[0]
    reading = Reading(on_duplicate="best_rank")
    paths = [
        write(tmp_path / f"{name}.trec", [*lines, (query, "d", "0")])
        for name, lines in (("a", one), ("b", two), ("c", one[::-1]))
    ]
    fast, slow = (
        align(
            qrels(judged), [run(path, reading=reading) for path in paths[:2]],
            rerankers=[run(paths[2], reading=reading)],
        )
        for qrels, run in ((load_qrels, load_run), (slow_qrels, slow_run))
    )  # fmt: skip
    same(fast, slow)
    same(load_qrels(judged), slow_qrels(judged))


@pytest.mark.parametrize("size", [20, 64, 1000])
def test_blocks_make_no_difference(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    lines = [(f"q{n // 9}", f"d{n}", f"{x:.4f}") for n, x in enumerate(rng.normal(0, 9, 60))]
    path = write(tmp_path / "a.trec", lines)
    expected = slow_run(path)
    monkeypatch.setattr(_spans, "BLOCK", size)
    same(load_run(path), expected)


@pytest.mark.parametrize("blank", "\x0b\x0c\x1c\x85\xa0\u2003\u3000")
def test_white_space_of_other_kinds_still_separates(blank: str, tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text(f"q1{blank}Q0 d1 1 0.5 t\n", encoding="utf-8", newline="")
    assert load_run(path).to_dict() == {"q1": {"d1": 0.5}}


@pytest.mark.parametrize(
    ("text", "fast"),
    [
        ("q Q0 d 1 2 t\n", True),
        ("q\tQ0 d 1 2 t\r\nq Q0 e 1 2 t", True),
        ("q  Q0 d 1 2 t\n", False),
        ("q Q0 d 1 2 t \n", False),
        ("\nq Q0 d 1 2 t\n", False),
        ("q Q0 d 1\n2 t\n", False),
        ("q Q0 d 1 2 t q\nQ0 e 1 2 t\n", False),
        ("q Q0 d 1 2\x1ct\n", False),
        (f"q Q0 {'d' * 65} 1 2 t\n", False),
        ("q Q0 d 1 x t\n", False),
        ("", False),
    ],
)
def test_only_a_regular_file_is_read_fast(text: str, fast: bool) -> None:
    assert (trec._regular("run", text.encode()) is not None) is fast
