"""What several files share: marks, paths, heap, queues of bidders, entries, pairs at a limit."""
