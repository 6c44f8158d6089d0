"""What a ``dataset.yaml`` says of single files."""
