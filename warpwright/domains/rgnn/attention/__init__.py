"""HGT's attention over the edges into each node, on large graphs, in kernels that keep no number of an edge forward."""
