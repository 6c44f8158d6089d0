"""Equal scores inside the lists that a system reads, and what their order does to its values."""
