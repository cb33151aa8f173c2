"""Searches in which a language model writes whole programs: questions (`prompts/`), the programs in its answers, and what it is told of them."""
