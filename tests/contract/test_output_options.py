"""Every option that names a file to write replaces nothing but what a command wrote there."""

import shutil
from pathlib import Path

import pytest

from fusion_bench.cli.application.app import OUTPUTS
from tests.attacks.project import DATASET, QRELS, QUERIES, RUN, make_project
from tests.attacks.runner import read_files, run_here
from tests.commands import leaf_commands, options_of
from tests.engines.pull.cases import write_queries
from tests.output_commands import FILES, FOLDERS, READ, TRIED_ELSEWHERE

FOREIGN = "my own notes\n"
#: What ``tune`` adds to as it searches, whatever comes of it.
SEARCH_LOG = "trials.jsonl"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project, with foreign files of every suffix; what is refused leaves it as it is."""
    root = make_project(tmp_path_factory.mktemp("outputs"))
    for _, _, suffix in FILES:
        (root / f"foreign{suffix}").write_text(FOREIGN, encoding="utf-8")
    return root


def test_every_option_that_names_a_file_is_known_to_be_read_or_written() -> None:
    written = {(command, option) for command, option, _ in FILES} | {*FOLDERS} | TRIED_ELSEWHERE
    for name, command in leaf_commands().items():
        for parameter in command.params:
            is_path = "Path" in str(parameter.type_descriptor.annotation)
            option = parameter.opts[0]
            if is_path or parameter.metavar in ("FILE", "DIR"):
                is_written = (name, option) in written
                assert is_written != (option in READ and not is_written), (name, option)
                assert not is_written or option in OUTPUTS or option == "folder", (name, option)
        is_guarded = not OUTPUTS.isdisjoint(options_of(command))
        assert ("--force" in options_of(command)) == is_guarded, name
    assert written <= {
        (name, option) for name, each in leaf_commands().items() for option in options_of(each)
    }


@pytest.mark.parametrize("case", FILES, ids=lambda case: " ".join(case))
def test_no_file_is_replaced_that_no_command_wrote(
    case: tuple[str, str, str], shared: Path
) -> None:
    _, option, suffix = case
    foreign = f"foreign{suffix}"
    before = read_files(shared)
    for name, force in (
        *((each, force) for each in (QRELS, DATASET, QUERIES, RUN) for force in ([], ["--force"])),
        (foreign, []),
    ):
        outcome = run_here((*FILES[case].split(), option, name, *force), shared)
        assert outcome.code == 2, (name, outcome)
        assert read_files(shared) == before, (name, outcome)
    if option not in ("--write-qrels", "--write-groups", "--export"):
        assert "add --force" in outcome.err
        assert foreign in outcome.err


@pytest.mark.parametrize("case", FOLDERS, ids=" ".join)
def test_no_file_of_a_folder_is_replaced_that_no_command_wrote(
    case: tuple[str, str], tmp_path: Path
) -> None:
    root = make_project(tmp_path)
    write_queries(root)
    words = FOLDERS[case]

    def run(folder: str, *more: str) -> tuple[int, str]:
        named = [folder if word == "?" else word for word in words.split()]
        place = () if "?" in words else (case[1], folder)
        outcome = run_here((*named, *place, *more), root)
        return outcome.code, outcome.err

    code, error = run("first")
    assert code == 0, (words, error)
    assert all(line.startswith("note: ") for line in error.splitlines()), error
    written = [
        path.relative_to(root / "first")
        for path in sorted((root / "first").rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    ]
    assert written
    for name in written:
        path = root / "second" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FOREIGN, encoding="utf-8")
        code, error = run("second")
        assert path.read_text(encoding="utf-8") == FOREIGN
        if (case[0], str(name)) == ("pull", "experiment.yaml"):
            assert code == 0  # an experiment that is there stays
        else:
            assert code == 2, name
            assert name.name in error, error
            others = [each for each in written if each not in (name, Path(SEARCH_LOG))]
            assert not [each for each in others if (root / "second" / each).exists()]
        shutil.rmtree(root / "second")
