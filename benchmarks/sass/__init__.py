"""Machine code: kernels of our own, the suite that searches their schedules, and the faults that ask the hardware."""
