"""Sums: by the threads of a warp or a block for a row, in memory turn by turn, over a grid's stride, and in a tree of shared memory."""
