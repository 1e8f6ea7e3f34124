"""The results of calls: pairs, matchings, assignments, and results in tensors."""
