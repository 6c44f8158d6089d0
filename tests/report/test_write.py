"""The folder: everything whole, or nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fusion_bench.config.json_records import read_stored
from fusion_bench.config.options import PictureOptions
from fusion_bench.errors import FusionBenchError
from fusion_bench.evaluation.report_file import read_report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.io.outputs import RECORD
from fusion_bench.report.page import NextStep
from fusion_bench.report.tuning_records import TuningReport
from fusion_bench.report.write import write_report, write_tuning
from fusion_bench.util.formatting import format_number
from tests.report import cases
from tests.report.cases import PRIMARY, SECOND
from tests.report.html.pages import page_data, parse_page
from tests.report.tuning_cases import front, record

#: How the primary measure stands in names of files: make and shells read ``@`` as something else.
FILE = PRIMARY.replace("@", "-")


def listed(folder: Path) -> list[str]:
    """All files but the ``.gitignore`` of a new folder and the record of what was written."""
    paths = (path for path in folder.rglob("*") if path.name not in {".gitignore", RECORD})
    return sorted(str(path.relative_to(folder)) for path in paths)


@pytest.mark.slow
def test_everything_is_written(tmp_path: Path) -> None:
    report = cases.report(cases.full("é 中"))
    folder = tmp_path / "a/b"
    files = write_report(report, folder, PictureOptions(plots=True))
    names = [
        "report.json",
        "report.md",
        "report.html",
        f"tiny-{FILE}-forest.png",
        f"tiny-{FILE}.png",
        f"tiny-{SECOND.replace('@', '-')}.png",
        f"tiny-{FILE}-differences.png",
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
    write_report(cases.report(one_picture(system="other")), tmp_path)
    after = contents(tmp_path)
    assert set(after) == set(before)
    assert all(after[name] != data for name, data in before.items())


def test_one_system_has_no_differences(tmp_path: Path) -> None:
    options = PictureOptions(html=False, plots=True)
    files = write_report(cases.report(one_picture()), tmp_path, options)
    assert [path.name for path in files] == ["report.json", "report.md", f"tiny-{FILE}.png"]


@pytest.mark.slow
def test_without_pictures_matplotlib_is_not_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from fusion_bench.evaluation.report_file import Report; "
        "from fusion_bench.config.options import PictureOptions; "
        "from fusion_bench.report.write import write_report; "
        "report = Report.model_validate_json(sys.stdin.read()); "
        "options = PictureOptions(plots=sys.argv[2] == 'True'); "
        "write_report(report, Path(sys.argv[1]), options); "
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


@pytest.mark.slow
def test_nothing_is_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = cases.report(one_picture(system="new"))
    write_report(
        cases.report(one_picture(system="old")), tmp_path, PictureOptions(html=False, plots=True)
    )
    write_report(new, tmp_path / "other", PictureOptions(html=False, plots=True))
    before = contents(tmp_path)
    assert before != contents(tmp_path / "other")
    replace, calls = os.replace, []

    def failing(source: Path, target: Path) -> None:
        calls.append(source)
        assert source.parent.parent == target.parent  # near it, or the move is not atomic
        assert source.stat().st_size > 0
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("os.replace", failing)
    with pytest.raises(FusionBenchError, match="No space left"):
        write_report(new, tmp_path, PictureOptions(html=False, plots=True))
    monkeypatch.undo()
    assert len(calls) > 2
    assert contents(tmp_path) == before


def test_nothing_is_written_when_rendering_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> str:
        raise RuntimeError("rendering")

    monkeypatch.setattr("fusion_bench.report.write.render_page", failing)
    with pytest.raises(RuntimeError, match="rendering"):
        write_report(cases.report(cases.full()), tmp_path / "out", PictureOptions(plots=False))
    assert listed(tmp_path) == []


def test_an_interruption_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(cases.report(cases.full()), tmp_path, PictureOptions(plots=False))
    assert listed(tmp_path) == []


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_folder_that_is_a_file(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(FusionBenchError, match="file") as error:
        write_report(cases.report(cases.full()), tmp_path / place, PictureOptions(plots=False))
    assert str(error.value).startswith(f"{tmp_path / 'file'}")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
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
        ("a @ b", "a-b"),
        ("x" * 300, "x" * 60),
        ("y" * 59 + "-z", "y" * 59),
        ("(x](y.png)", "x-y.png"),
    ],
)
def test_pictures_stay_in_the_folder(tmp_path: Path, name: str, stem: str) -> None:
    folder = tmp_path / "a/b/c"
    files = write_report(cases.report(one_picture(name)), folder, PictureOptions(plots=True))
    assert files[-1] == folder / f"{stem}-{FILE}.png"
    assert listed(tmp_path) == [
        "a",
        "a/b",
        "a/b/c",
        *sorted(f"a/b/c/{path.name}" for path in files),
    ]
    assert f"]({files[-1].name})" in files[1].read_text(encoding="utf-8")


@pytest.mark.slow
def test_pictures_do_not_overwrite_each_other(tmp_path: Path) -> None:
    same = [one_picture(name) for name in ("x/y", "x y", "X?Y", "x-y-1")]
    files = write_report(cases.report(*same), tmp_path, PictureOptions(html=False, plots=True))
    names = [path.name for path in files[2:]]
    assert names == [
        f"x-y-{FILE}.png",
        f"x-y-{FILE}-1.png",
        f"X-Y-{FILE}-2.png",
        f"x-y-1-{FILE}.png",
    ]
    text = files[1].read_text(encoding="utf-8")
    assert [text.count(f"]({name})") for name in names] == [1, 1, 1, 1]
    places = [text.index(f"]({name})") for name in names]
    assert places == sorted(places)


def test_a_file_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "report.json").mkdir()
    with pytest.raises(FusionBenchError, match=r"report\.json"):
        write_report(cases.report(cases.full()), tmp_path, PictureOptions(plots=False))
    assert listed(tmp_path) == ["report.json"]


# ── tuning runs


def test_the_folder_of_a_tuning_run_is_whole(tmp_path: Path) -> None:
    written = write_tuning(
        record(), tmp_path / "new", PictureOptions(plots=False), tuned="dataset: x\n"
    )
    expected = ["tuning.json", "tuning.md", "tuning.html", "tuned.yaml"]
    assert [path.name for path in written] == expected
    assert read_stored(written[0], TuningReport, what="tuning run", remedy="again") == record()
    assert written[3].read_text(encoding="utf-8") == "dataset: x\n"
    names = {path.name for path in written} | {".gitignore"}
    assert {path.name for path in (tmp_path / "new").iterdir()} == {*names, RECORD}


@pytest.mark.slow
def test_the_page_of_a_tuning_run_draws_the_figures_that_plots_writes(tmp_path: Path) -> None:
    report = record()
    steps = (NextStep("fusion-bench eval tuned.yaml", "see it"),)
    options = PictureOptions(plots=True)
    written = write_tuning(report, tmp_path, options, tuned="", next_steps=steps)
    pictures = [path for path in written if path.suffix == ".png"]
    page = parse_page((tmp_path / "tuning.html").read_text(encoding="utf-8"))
    places = [attributes["data-picture"] for tag, attributes in page.tags if tag == "figure"]
    assert places == [path.name for path in pictures]
    assert "img" not in dict(page.tags)
    drawn = page_data((tmp_path / "tuning.html").read_text(encoding="utf-8"))["report"]
    assert drawn["trials"] == report.model_dump(mode="json")["trials"]
    assert "config" not in drawn["choice"]
    assert format_number(report.held_out.difference, signed=True) in page.texts["title"][0]
    assert "held-out" in page.texts["title"][0]
    assert steps[0].command in page.texts["code"]
    before = {path.name for path in written} - {"tuning.html"}
    again = write_tuning(
        report, tmp_path / "other", PictureOptions(html=False, plots=False), tuned=""
    )
    assert {path.name for path in again} < before


def test_the_efficient_systems_are_an_experiment_too(tmp_path: Path) -> None:
    tuned = "dataset: x\nbaseline: today\nsystems: {today: {k: 1}, today tuned: {k: 2}}\n"
    written = write_tuning(
        record(front=front()), tmp_path, PictureOptions(plots=False), tuned=tuned
    )
    data = yaml.safe_load({path.name: path for path in written}["front.yaml"].read_text())
    assert data["dataset"] == "x"
    names = [f"today, {what}" for what in ("no reranker", "depth 10", "depth 60")]
    assert list(data["systems"]) == ["today", *names]
    assert data["systems"]["today, depth 10"] == {"runs": ["dense"]}
