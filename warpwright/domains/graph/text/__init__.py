"""The text of a generated file, where it depends on the graph.

    calls.py     one call as an expression
    straight.py  a graph as straight-line functions, and the kernels that they call
    autograd.py  a graph of forward and backward as an autograd function
    apart.py     names of the text's own where the original means something else by them
    parts.py     a file in which parts of a model have programs of their own

`lower.py` puts a file together; `template.py` has what is the same in all files.
"""
