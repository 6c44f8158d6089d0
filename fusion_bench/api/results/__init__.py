"""What the Python functions return."""
