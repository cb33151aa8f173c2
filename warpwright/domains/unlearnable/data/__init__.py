"""Labelled image data sets: read them, hold them in memory, write them."""
