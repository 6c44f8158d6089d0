"""What ``judge`` does instead of asking in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from fusion_bench.judge.pool.judged_systems import JudgedSystems


@dataclass(frozen=True)
class JudgeActions:
    """What is done instead of judging in the terminal.

    Attributes:
        export: The spreadsheet to write.
        import_: The spreadsheet to read.
        write_qrels: The qrels to write.
        is_list: Only list the documents.
        is_json: Print JSON.
    """

    export: Path | None
    import_: Path | None
    write_qrels: Path | None
    is_list: bool
    is_json: bool

    def check(
        self, pair: Mapping[str, str | None], budget: int | None, *, has_combine: bool = False
    ) -> None:
        """Refuse options that do not go together.

        Args:
            pair: Options that need ``--next``.
            budget: That of ``--next``.
            has_combine: Whether ``--combine`` is given.

        Raises:
            typer.BadParameter: Two do not, or the spreadsheet is not named ``.csv``.
        """
        given = {
            "--export": self.export,
            "--import": self.import_,
            "--write-qrels": self.write_qrels,
            "--list": self.is_list or None,
        }
        chosen = [option for option, value in given.items() if value is not None]
        if len(chosen) > 1:
            raise typer.BadParameter(f"does not go with {chosen[0]}", param_hint=chosen[1])
        if self.export is not None and self.export.suffix.lower() != ".csv":
            raise typer.BadParameter(
                f"{self.export}: it writes comma-separated values (CSV), which every spreadsheet "
                "opens: name it .csv",
                param_hint="--export",
            )
        if has_combine and self.write_qrels is None:
            raise typer.BadParameter("needs --write-qrels FILE", param_hint="--combine")
        if budget is None:
            for option, value in pair.items():
                if value is not None:
                    raise typer.BadParameter("needs --next BUDGET", param_hint=option)
        elif self.import_ is not None or self.write_qrels is not None:
            raise typer.BadParameter(f"does not go with {chosen[0]}", param_hint="--next")

    def refuse_replaced_inputs(self, judged: JudgedSystems) -> None:
        """Refuse a spreadsheet in the place of a file that the command reads.

        Raises:
            ConfigError: It is one of the dataset's or of its judges' files, or the experiment.
        """
        from fusion_bench.io.outputs import refuse_inputs

        refuse_inputs((judged.path, judged.source.path))
        if self.export is not None:
            refuse_inputs(judged.dataset.spec.file_paths(judged.path.parent))
