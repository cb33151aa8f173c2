"""The processes that a task's judgement rests on: its judge and its baselines, how they come up, and what they may take."""
