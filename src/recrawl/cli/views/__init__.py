"""What commands show: reports, live views, plots."""
