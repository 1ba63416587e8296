"""Pages of commands: lists of pages, patterns, saved states, exports and imports."""
