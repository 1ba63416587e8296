"""What counts beyond a page's own rate: groups, bursts, seasons; cohorts of equal pages."""
