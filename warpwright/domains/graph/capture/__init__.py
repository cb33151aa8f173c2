"""From a model to the graph IR: how its forward, or a step of its training, is traced and made a graph of values."""
