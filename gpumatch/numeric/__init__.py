"""What host and device compute in one way: arrays, exact sums, gaps, schedules, draws."""
