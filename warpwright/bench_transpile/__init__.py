"""A benchmark of CUDA -> C translation: suites are loaded, candidates judged in child processes, and every failure counts.

In order of processing: items (hpctranseval, kernelbench_c, pairs) -> probe, grids, wiring -> candidates -> program, runner -> judge -> report.
"""
