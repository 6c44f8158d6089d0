"""What a run found: values of systems, comparisons, verdicts, bounds over what is not known."""
