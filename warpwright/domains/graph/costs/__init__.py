"""How long a program takes, from bytes, operations and calls at a device's rates."""
