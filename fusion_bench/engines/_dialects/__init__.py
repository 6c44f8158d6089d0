"""What dialects share: formulas, translations of systems, configurations written and read."""
