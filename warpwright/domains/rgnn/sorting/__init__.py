"""What builds a graph's index on a GPU: sorting by counting, and the work list of kernels over rows, in a few launches."""
