"""Passes over variables: counters, values that are set again, and memory in which a thread accumulates."""
