"""Recover launches that a suite does not store: grids by running with recording pointers, buffers from the reference or by a search."""
