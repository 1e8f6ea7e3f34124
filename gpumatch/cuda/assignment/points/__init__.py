"""The GPU's engine for costs that are computed."""
