"""What is known of a kernel before it is changed: uniform values, bounds, placement of values, what may be vectorised."""
