"""Verbs of one domain each: what it does beside the search that all domains share."""
