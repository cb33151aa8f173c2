"""Policies and their ablations, compared on tasks held out, from what was recorded."""
