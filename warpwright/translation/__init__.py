"""Translation of CUDA to C: data sets of equal programs, and a benchmark that judges translators.

In order of processing: pairs (the data set) or suites -> items -> wiring -> translators -> judge -> bench -> report.
"""
