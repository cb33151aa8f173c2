"""What a policy learns from: recipes of many tasks, each compared with float64 and timed by a probe."""
