"""From a store to an engine and a crawler: of all pages or a part, with other settings, or for a preview."""
