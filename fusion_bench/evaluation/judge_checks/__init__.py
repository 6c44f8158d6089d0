"""What speaks against grades that a model gave."""
