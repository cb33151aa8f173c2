"""Each pass of the faster tiers, one a file: what it looks for, when it applies, what it puts in its place."""
