"""Decides whether a candidate computes what the original computes."""
