"""How one loop over threads, or over the lanes of a warp, is written: one technique a file; `thread_loops.py` and `warp_vectors.py` choose."""
