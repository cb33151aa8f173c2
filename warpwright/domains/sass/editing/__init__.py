"""What may be changed: edits of one place, of blocks, of registers, and the techniques that a search takes them as."""
