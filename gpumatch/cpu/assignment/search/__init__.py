"""What the searches of several files share: paths, queues, entries, pairs at a limit."""
