"""How reliable the verifier's verdicts are."""
