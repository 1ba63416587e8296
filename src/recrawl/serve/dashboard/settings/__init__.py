"""Settings that the dashboard edits: their routes, and the text that they are kept in."""
