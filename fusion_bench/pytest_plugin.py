"""A pytest fixture that checks a search configuration against its baseline.

::

    def test_search_config(fusion_gate):
        fusion_gate("experiments/mine.yaml")

The gate is imported only when a test calls the fixture.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from fusion_bench.gate.result import GateVerdict


class GateWarning(UserWarning):
    """A check did not pass, and the policy says to warn."""


@dataclass(frozen=True)
class FusionGate:
    """The fixture: call it with an experiment, and it fails the test where the gate blocks.

    Attributes:
        root: Folder that relative paths start from: pytest's root.
    """

    root: Path

    def __call__(
        self,
        experiment: str | Path,
        *,
        baseline: str | Path | None = None,
        datasets: Sequence[str | Path] = (),
        base: str | None = None,
        changes: Sequence[str] = (),
        **other: object,
    ) -> GateVerdict:
        """Check an experiment's candidate against its baseline.

        Args:
            experiment: The YAML file.
            baseline: Default: ``reports/baselines/EXPERIMENT.json``.
            datasets: Folders of named datasets; by default ``datasets`` beside the experiment's
                folder, then in the root.
            base: The commit that the change starts from; see ``gate --base``.
            changes: ``KEY=VALUE`` each: values of the experiment to replace; see ``gate --set``.
            other: Nothing; an unknown argument ends in an error.

        Returns:
            The verdict, where the gate does not block.
        """
        from fusion_bench.api.tune import gate
        from fusion_bench.errors import FusionBenchError
        from fusion_bench.gate.page import format_text
        from fusion_bench.gate.verdict import ACCEPTED
        from fusion_bench.util.files import baseline_path

        for name in other:
            hint = ": write changes=['systems.NAME.fusion.k=20']" if name == "set" else ""
            raise TypeError(f"fusion_gate() has no argument {name!r}{hint}")
        path = self.root / experiment
        folders = [self.root / folder for folder in datasets]
        folders = folders or [path.parent.parent / "datasets", self.root / "datasets"]
        file = self.root / (baseline or baseline_path(path))
        try:
            verdict = gate(path, baseline=file, folders=folders, base=base, changes=changes)
        except FusionBenchError as error:
            pytest.fail(f"fusion-bench gate: {error}", pytrace=False)
        if verdict.exit_code:
            pytest.fail(format_text(verdict), pytrace=False)
        if any(each.status not in ACCEPTED for each in verdict.outcomes):
            warnings.warn(format_text(verdict), GateWarning, stacklevel=2)
        return verdict


@pytest.fixture
def fusion_gate(request: pytest.FixtureRequest) -> FusionGate:
    """Check a configuration against its baseline: ``fusion_gate("experiments/mine.yaml")``."""
    return FusionGate(request.config.rootpath)
