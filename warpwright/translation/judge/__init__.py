"""The judge of translations: oracle, candidates in sandboxed child processes, comparison and timing."""
