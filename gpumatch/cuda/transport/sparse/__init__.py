"""Sparse costs: lots at prices with an epsilon (`auction`), then exact paths (`paths`)."""
