"""What several files share: marks, paths, heap, queues of bidders, entries, and last steps."""
