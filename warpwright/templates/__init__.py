"""Kernels of our own, one operation a file: a ladder of versions, parameters and their legal ranges at the top, achieved against peak."""
