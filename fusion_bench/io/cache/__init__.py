"""What was read and aligned before, in a folder beside the dataset."""
