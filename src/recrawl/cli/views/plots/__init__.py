"""Pictures of what commands found."""
