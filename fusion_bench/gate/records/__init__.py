"""The records that a gate writes."""
