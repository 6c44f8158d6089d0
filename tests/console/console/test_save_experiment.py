from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fusion_bench.console.experiment_files import NameTakenError, save_setting
from fusion_bench.console.session import ConsoleSession
from fusion_bench.console.setting import Setting
from fusion_bench.errors import ConfigError
from tests.console.project import make_project, open_project

ASKED = Setting(system="boosted", parameters={"fusion.k": 9, "blend.beta": 0.25})


def test_the_saved_experiment_has_the_numbers_of_the_console(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    saved = save_setting(session, ASKED, "mine")
    file = tmp_path / "experiments/mine.yaml"
    assert saved["file"] == str(file)
    assert file.read_text(encoding="utf-8") == saved["yaml"]
    assert saved["commands"]["tune"] == f"fusion-bench tune {file}"
    file.rename(tmp_path / "experiments/e.yaml")
    again = open_project(tmp_path)
    assert again.system == "mine"  # 'tune' names it
    assert again.answer(Setting(system="mine"))["measures"] == session.answer(ASKED)["measures"]
    assert again.tuning.trials == 20  # the rest of 'tune' stays


def test_commands_name_the_folders_that_the_console_was_given(session: ConsoleSession) -> None:
    elsewhere = replace(session, folders=(Path("my data"),))
    commands = save_setting(elsewhere, ASKED, "mine", write=False)["commands"]
    assert commands["eval"].endswith("mine.yaml --datasets 'my data'")


def test_a_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    (tmp_path / "experiments/mine.yaml").write_text("precious", encoding="utf-8")
    with pytest.raises(NameTakenError, match="exists"):
        save_setting(session, ASKED, "mine")
    assert save_setting(session, ASKED, "mine", write=False)["is_written"] is False
    assert (tmp_path / "experiments/mine.yaml").read_text(encoding="utf-8") == "precious"
    save_setting(session, ASKED, "mine", overwrite=True)
    assert "precious" not in (tmp_path / "experiments/mine.yaml").read_text(encoding="utf-8")


def test_nothing_is_written_outside_or_through_a_link(tmp_path: Path) -> None:
    make_project(tmp_path)
    session = open_project(tmp_path)
    target = tmp_path / "elsewhere"
    (tmp_path / "experiments/link.yaml").symlink_to(target)
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="is a link"):
            save_setting(session, ASKED, "link", overwrite=overwrite)
        with pytest.raises(ConfigError, match="that is open"):
            save_setting(session, ASKED, "e", overwrite=overwrite)
    assert not target.exists()


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "/x", "a/b", "a\\b", ".x", "x.yaml", "x\n", "é", "x" * 65, "-x"]
)
def test_a_name_is_no_path(session: ConsoleSession, name: str) -> None:
    with pytest.raises(ConfigError, match=r"name: .* 1 to 64"):
        save_setting(session, ASKED, name, write=False)
