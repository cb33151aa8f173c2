"""Fused kernels for NVIDIA GPUs: the programs of `cpp/` (element-wise chains, reductions, what stands around them) written as CUDA C++.

    plan.py      how a program is spread over a grid: vectors, threads a row, what stays in registers, parts of long rows
    generate.py  the text: addresses.py finds elements, elements.py goes over a vector of them, joins.py puts threads' shares together
    kernel.py    a kernel as a callable of the graph
    orders/      kernels that order or count elements
"""
