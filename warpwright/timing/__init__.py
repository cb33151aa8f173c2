"""Decides whether a candidate is faster: the timer, its statistics, and the floor below which no time is believed."""
