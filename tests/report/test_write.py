"""The folder: everything whole, or nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.report_file import Report, read_report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.io.outputs import RECORD
from fusion_bench.report.write import write_report
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND


def listed(folder: Path) -> list[str]:
    """All files but the ``.gitignore`` of a new folder and the record of what was written."""
    paths = (path for path in folder.rglob("*") if path.name not in {".gitignore", RECORD})
    return sorted(str(path.relative_to(folder)) for path in paths)


def test_everything_is_written(tmp_path: Path) -> None:
    report = cases.report(cases.full("é 中"))
    folder = tmp_path / "a/b"
    files = write_report(report, folder)
    names = [
        "report.json",
        "report.md",
        "report.html",
        f"tiny-{PRIMARY}-forest.png",
        f"tiny-{PRIMARY}.png",
        f"tiny-{SECOND}.png",
        f"tiny-{PRIMARY}-differences.png",
    ]
    assert files == [folder / name for name in names]
    assert listed(folder) == sorted(names)
    assert (folder / ".gitignore").exists()
    assert read_report(files[0]) == report
    assert files[0].read_bytes().endswith(b"}\n")
    text = files[1].read_text(encoding="utf-8")
    assert re.findall(r"!\[.*?\]\((.*?)\)", text) == names[3:]
    assert "é 中" in text
    assert "é 中" in files[2].read_text(encoding="utf-8")
    for picture in files[3:]:
        data = picture.read_bytes()
        assert data.startswith(b"\x89PNG")
        assert data.endswith(b"IEND\xaeB`\x82")


def one_picture(name: str = "tiny", system: str = "base") -> Collection:
    row = cases.system(system, 0.5, 0.4)
    return cases.collection(row, name=name, baseline=system, measures=(PRIMARY,))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.iterdir() if path.is_file() and path.name != RECORD)
    return {path.name: path.read_bytes() for path in files}


def test_writing_again_replaces(tmp_path: Path) -> None:
    write_report(cases.report(one_picture()), tmp_path)
    first = contents(tmp_path)
    write_report(cases.report(one_picture()), tmp_path)
    before = contents(tmp_path)
    assert [name for name in first if before[name] != first[name]] == ["report.html"]
    assert "No setting, system, list or value changed." in before["report.html"].decode()
    write_report(cases.report(one_picture(system="other")), tmp_path)
    after = contents(tmp_path)
    assert set(after) == set(before)
    assert all(after[name] != data for name, data in before.items())


def test_one_system_has_no_differences(tmp_path: Path) -> None:
    files = write_report(cases.report(one_picture()), tmp_path, html=False)
    assert [path.name for path in files] == ["report.json", "report.md", f"tiny-{PRIMARY}.png"]


def test_without_pictures_matplotlib_is_not_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from fusion_bench.evaluation.report_file import Report; "
        "from fusion_bench.report.write import write_report; "
        "report = Report.model_validate_json(sys.stdin.read()); "
        "write_report(report, Path(sys.argv[1]), plots=sys.argv[2] == 'True'); "
        "print('matplotlib' in sys.modules)"
    )
    text = cases.report(cases.full()).model_dump_json()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(tmp_path / "none"), "False"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    assert done.stdout == "False\n"
    assert (tmp_path / "none/report.md").stat().st_size > 0


@pytest.mark.parametrize("fails_at", [2])
def test_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    new = cases.report(one_picture(system="new"))
    write_report(cases.report(one_picture(system="old")), tmp_path, html=False)
    write_report(new, tmp_path / "other", html=False)
    before = contents(tmp_path)
    assert before != contents(tmp_path / "other")
    replace, calls = os.replace, []

    def failing(source: Path, target: Path) -> None:
        calls.append(source)
        assert source.parent.parent == target.parent  # near it, or the move is not atomic
        assert source.stat().st_size > 0
        if len(calls) == fails_at:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", failing)
    with pytest.raises(FusionBenchError, match=r"cannot be written: .*No space left"):
        write_report(new, tmp_path, html=False)
    monkeypatch.undo()
    assert len(calls) > fails_at
    assert contents(tmp_path) == before


def test_nothing_is_written_when_rendering_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> str:
        raise RuntimeError("rendering")

    monkeypatch.setattr("fusion_bench.report.write.render_page", failing)
    with pytest.raises(RuntimeError, match="rendering"):
        write_report(cases.report(cases.full()), tmp_path / "out", plots=False)
    assert listed(tmp_path) == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_is_a_file(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(FusionBenchError, match="cannot be written") as error:
        write_report(cases.report(cases.full()), tmp_path / place, plots=False)
    assert str(error.value).startswith(f"{tmp_path / 'file'}")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("../../x", "x"),
        ("/etc/passwd", "etc-passwd"),
        ("..", "unnamed"),
        (".hidden", "hidden"),
        ("", "unnamed"),
        ("中文", "unnamed"),
        ("a b\\c:d*?", "a-b-c-d"),
        ("a\x00b\n", "a-b"),
        ("a @ b", "a@b"),
        ("x" * 300, "x" * 60),
        ("y" * 59 + "-z", "y" * 59),
        ("(x](y.png)", "x-y.png"),
    ],
)
def test_pictures_stay_in_the_folder(tmp_path: Path, name: str, stem: str) -> None:
    folder = tmp_path / "a/b/c"
    files = write_report(cases.report(one_picture(name)), folder)
    assert files[-1] == folder / f"{stem}-{PRIMARY}.png"
    assert listed(tmp_path) == [
        "a",
        "a/b",
        "a/b/c",
        *sorted(f"a/b/c/{path.name}" for path in files),
    ]
    assert f"]({files[-1].name})" in files[1].read_text(encoding="utf-8")


def test_pictures_do_not_overwrite_each_other(tmp_path: Path) -> None:
    same = [one_picture(name) for name in ("x/y", "x y", "X?Y", "x-y-1")]
    files = write_report(cases.report(*same), tmp_path, html=False)
    names = [path.name for path in files[2:]]
    assert names == [
        f"x-y-{PRIMARY}.png",
        f"x-y-{PRIMARY}-1.png",
        f"X-Y-{PRIMARY}-2.png",
        f"x-y-1-{PRIMARY}.png",
    ]
    text = files[1].read_text(encoding="utf-8")
    assert [text.count(f"]({name})") for name in names] == [1, 1, 1, 1]
    places = [text.index(f"]({name})") for name in names]
    assert places == sorted(places)


def test_the_file_is_strict_json(tmp_path: Path) -> None:
    report = cases.report(cases.full(), settings={"x": float("nan"), "y": [float("inf")]})
    path = write_report(report, tmp_path, plots=False)[0]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    data = json.loads(path.read_bytes(), parse_constant=refuse)
    assert (data["settings"]["x"], data["settings"]["y"]) == (None, [None])
    assert isinstance(Report.model_validate(data), Report)


def test_without_pictures(tmp_path: Path) -> None:
    files = write_report(cases.report(cases.full()), tmp_path, plots=False)
    names = ["report.json", "report.md", "report.html"]
    assert [path.name for path in files] == names
    assert listed(tmp_path) == sorted(names)
    assert "![" not in files[1].read_text(encoding="utf-8")


def test_an_interruption_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(cases.report(cases.full()), tmp_path, plots=False)
    assert listed(tmp_path) == []


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(FusionBenchError, match="cannot be written"):
        write_report(cases.report(cases.full()), tmp_path, plots=False)
    assert listed(tmp_path) == ["report.json"]
