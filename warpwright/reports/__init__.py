"""Shows records: terminal, markdown, JSON, one HTML page."""
