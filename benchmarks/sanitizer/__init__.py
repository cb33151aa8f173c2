"""What the sanitizer of translated kernels finds, and what it does not complain of."""
