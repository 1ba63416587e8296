"""Which pages may be picked, and why others may not: pauses, retries, deferrals, cohorts, unlikely changes."""
