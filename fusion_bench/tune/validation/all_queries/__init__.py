"""Every query both tunes and decides: cross-fitting and its exact test."""
