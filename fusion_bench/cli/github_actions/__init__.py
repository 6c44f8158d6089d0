"""What the runner of GitHub Actions reads: annotations, and lines that it must not obey."""
