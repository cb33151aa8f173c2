"""A small model that reads a program and writes a recipe: its words, its prompts, what it may write, and the search that asks it.

    words  ->  prompt, writing  ->  model  ->  search

Training is in `learn/policy`.
"""
