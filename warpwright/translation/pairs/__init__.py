"""Pairs of equal programs, CUDA and C with OpenMP, printed from one tensor expression, verified and written as parquet.

In order of processing: definitions (expr, operators, random_graphs) -> printers -> draft -> build -> check -> dedup -> data_set.
"""
