"""What a pair computes: tensor expressions, the table of operators, random graphs grown from them, their inputs and their numpy reference."""
