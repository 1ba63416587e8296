"""One policy run against one trace."""
