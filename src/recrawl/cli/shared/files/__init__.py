"""Files and tables that commands read and write."""
