"""What the judge is made of: hidden inputs, the original's answers, and how far a right answer may be from them."""
