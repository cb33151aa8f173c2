"""CUDA texts of tests, joined."""


def once(text: str) -> str:
    """Return a text with each helper defined once."""
    kept: list[str] = []
    seen: set[str] = set()
    skipping = False
    for line in text.splitlines():
        if line.startswith("static "):
            skipping = line in seen
            seen.add(line)
        if not skipping:
            kept.append(line)
        if line == "}" or (line.startswith("static ") and line.endswith("}")):
            skipping = False
    return "\n".join(kept)
