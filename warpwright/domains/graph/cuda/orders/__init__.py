"""Kernels that order or count elements: sorted rows, the largest of a row, histograms."""
