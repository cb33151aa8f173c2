"""Derived datatypes of MPI: any layout of bytes, packed and unpacked at the speed of the memory (docs/mpi.md)."""
