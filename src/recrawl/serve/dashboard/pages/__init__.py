"""Pages on the dashboard: lists of them, one page with its timeline, and what the store holds of them."""
