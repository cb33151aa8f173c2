"""Fused C++ kernels for the CPU: element-wise chains and row reductions of the graph as one pass over memory.

    program.py       what a kernel computes, element by element, and how aten calls become that
    generate.py      from a program to C++ text: writer.py where the loops follow the rows, columns.py where they run across columns
    kernel.py        a kernel as a callable that stands in the graph
    regions.py       which calls become one kernel
    vector_math.cpp  vectors, exp, log, tanh, erf ... and reductions: the head of every generated source
"""
