"""Arrays of a kernel: which are windows of global memory, which a thread's own, which volatile without need."""
