"""What several commands share: options, tables, logs."""
