"""Hits become what a model reads: the tool, its registry, the executor, and the loop that drives them."""
