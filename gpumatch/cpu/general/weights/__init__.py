"""Maximum weight matching of general graphs by Edmonds' algorithm.

| file | what is in it |
| --- | --- |
| `engine.py` | the driver: what a task is, start, searches, the result |
| `state.py` | the encoding of vertices, blossoms and the tree; memory for a run |
| `start.py` | greedy duals, and a matching of tight edges |
| `search.py` | one tree, from one unmatched vertex to its end |
| `blossoms.py` | blossoms: shrink, expand, and give all of them up at the end |
"""
