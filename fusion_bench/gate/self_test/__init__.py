"""The gate run where the truth is known."""
