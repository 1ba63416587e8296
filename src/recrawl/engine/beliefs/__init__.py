"""What the engine believes about each page's change rate and signals, and the prior that all pages share."""
