"""What is legal: the model of hazards, in Python and C++, the distances that it has learnt, the checker that asks it; and a simulator."""
