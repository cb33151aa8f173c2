"""Benchmarks of the cuda domain."""
