"""Class-wise convolution (CWC, arXiv 2303.04278): filters, the operator with its back ends, its inverse, its theory."""
