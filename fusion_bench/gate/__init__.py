"""The regression gate: check a candidate configuration against a committed baseline."""
