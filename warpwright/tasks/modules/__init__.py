"""Modules and functions from Python as task files: copied, saved by value, and loaded again."""
