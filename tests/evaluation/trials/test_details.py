"""What stands behind the values of systems of several trials: that of the first."""

from __future__ import annotations

from pathlib import Path

from fusion_bench.evaluation.details.collector import CollectionDetails, DetailsCollector
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from tests.tiny import EXPERIMENT
from tests.trials_project import FIRST, SECOND, THIRD, make, make_plain


def details(root: Path) -> CollectionDetails:
    experiment, source = read_experiment(root / EXPERIMENT)
    collector = DetailsCollector(names=("a", "both"))
    report = run_experiment(experiment, source, folders=[root / "datasets"], details=collector)
    return collector.make_details(report).collections[0]


def test_details_are_those_of_the_first_trial_alone(tmp_path: Path) -> None:
    make(tmp_path / "repeated", SECOND, FIRST, THIRD)  # the first is not like the mean
    make_plain(tmp_path / "alone", SECOND)
    repeated, alone = details(tmp_path / "repeated"), details(tmp_path / "alone")
    assert sorted(repeated.detailed) == sorted(alone.detailed)
    for name in ("leave_one_out", "depth_curve"):
        ours, theirs = (sorted(map(repr, getattr(each, name).rows)) for each in (repeated, alone))
        assert ours == theirs, name
