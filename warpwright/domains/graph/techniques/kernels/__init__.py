"""Techniques that put kernels of our own in the place of calls: generated ones, those of `templates/`, and several of them in one native call."""
