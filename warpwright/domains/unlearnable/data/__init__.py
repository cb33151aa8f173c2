"""Labelled image data sets: read, held in memory, written."""
