"""A halo exchange of strided arrays, planned once: packed in one go, sent by persistent requests, or straight into a neighbour's memory."""
