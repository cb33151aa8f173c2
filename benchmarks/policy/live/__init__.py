"""Searches beside one another on a GPU, in whole spaces: answered by the probe, and by the evaluator."""
