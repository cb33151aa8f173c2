"""Learning from records and pairs."""
