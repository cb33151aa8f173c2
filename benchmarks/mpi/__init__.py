"""MPI_Pack and its kin: on host buffers beside two libraries, on the buffers of a GPU."""
