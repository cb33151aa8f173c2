"""The policy that writes recipes: its data, its comparison, its red team."""
