"""What each rank computes by itself for `gpumatch.distributed`, on its GPU."""
