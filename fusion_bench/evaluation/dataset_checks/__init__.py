"""What a dataset's own files say before any system is evaluated."""
