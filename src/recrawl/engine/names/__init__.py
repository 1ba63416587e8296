"""Names as bytes: an arena with an index, and the parts of URLs, computed for many at a time."""
