"""What comes back from a call: pairs, matchings, assignments, and the same in tensors."""
