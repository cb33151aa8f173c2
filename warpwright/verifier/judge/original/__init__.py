"""The original at work in the judge: its answers in float64 and in its own precision, how far rounding moves them, and the memory that this takes."""
