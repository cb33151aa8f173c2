"""Reads task files: what they say, how much memory a call takes, and the same at a smaller size."""
