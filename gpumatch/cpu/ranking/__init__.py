"""What ranks assignments: the k cheapest of a problem, and the pairs of all that cost little more.

cheapest      the k cheapest assignments in their order: Murty's partition, best first
partition     how a part is divided, and the bounds of what that makes
search        the path that leads from the best assignment of a part to that of another one
proof         duals of the parts that were not divided
state         the arrays that these share
"""
