"""Class-wise convolution (CWC) of image data sets (arXiv 2303.04278): protect, recover, verify, attack."""
