"""How one loop over threads is written: one technique a file; `thread_loops.py` chooses, also among those of `passes/vectors/`."""
