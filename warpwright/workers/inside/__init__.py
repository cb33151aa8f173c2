"""What runs in a worker's own process: its end of the protocol, the program, and the watch over both."""
