"""Train networks on labelled images: on the CPU or a GPU, several side by side, resumable."""
