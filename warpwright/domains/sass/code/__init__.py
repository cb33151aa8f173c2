"""Machine code as it is read: cubins, listings, instructions, control words, kernels. It knows no rule."""
