"""Lint: what a configuration can and cannot do, from its numbers alone.

One file a rule, found by its name; ``docs/lint.md`` has a section for each.
"""

from fusion_bench.lint._base import Problem as Problem
from fusion_bench.lint._base import Rule as Rule
from fusion_bench.lint._base import load_rules as load_rules
from fusion_bench.lint._base import register_rule as register_rule
from fusion_bench.lint._lint_experiment import check_ignored as check_ignored
from fusion_bench.lint._lint_experiment import describe_dataset as describe_dataset
from fusion_bench.lint._lint_experiment import lint_datasets as lint_datasets
from fusion_bench.lint._lint_experiment import lint_experiment as lint_experiment
from fusion_bench.lint._lint_experiment import lint_systems as lint_systems
from fusion_bench.lint._lint_experiment import read_dataset_facts as read_dataset_facts
from fusion_bench.lint._record import LintReport as LintReport
from fusion_bench.lint._record import WitnessedFinding as WitnessedFinding
from fusion_bench.lint._record import WitnessRecord as WitnessRecord
from fusion_bench.lint._subject import DatasetFacts as DatasetFacts
from fusion_bench.lint._subject import Subject as Subject
from fusion_bench.lint._witness import Witness as Witness
from fusion_bench.lint._witness import reproduce as reproduce
from fusion_bench.lint._witnessed import make_lint_report as make_lint_report
