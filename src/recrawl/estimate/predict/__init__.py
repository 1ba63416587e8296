"""Change rates predicted from what pages look like."""
