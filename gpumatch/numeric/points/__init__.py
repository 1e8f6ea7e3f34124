"""The engine for costs that are computed, as far as CPU and GPU do the same: few pairs first."""
