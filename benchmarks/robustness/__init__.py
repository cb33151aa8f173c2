"""Programs that try to bring the verifier down, and what became of them."""
