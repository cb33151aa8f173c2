"""Searches against one another."""
