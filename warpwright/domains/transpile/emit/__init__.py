"""A planned kernel -> C++ text."""
