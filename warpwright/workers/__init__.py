"""The processes that run programs: started, limited, watched, asked and ended."""
