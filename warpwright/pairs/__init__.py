"""Pairs of equal programs, CUDA and C with OpenMP, printed from one tensor expression, verified and written as parquet.

In order of processing: functions -> expr -> operators -> graphs -> schedule -> print_cuda, print_c, reference -> check -> dedup -> write.
"""
