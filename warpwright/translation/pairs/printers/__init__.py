"""How a definition becomes text: a schedule is drawn for each stage, then printed as a CUDA kernel and as a C loop nest."""
