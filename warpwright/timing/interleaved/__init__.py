"""Programs timed in turns: what a run holds (`block`), how it is taken (`rounds`), what it says so far (`looks`) and in the end (`result`)."""
