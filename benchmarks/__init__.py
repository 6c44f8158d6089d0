"""Speed against peers, side by side."""
