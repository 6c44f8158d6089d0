"""The search: samplers, trial log, processes."""
