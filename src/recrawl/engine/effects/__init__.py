"""What counts beyond a page's own rate: groups; cohorts of equal pages."""
