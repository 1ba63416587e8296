-- Newest events: of one page, of one kind, and of one page with texts.
CREATE INDEX event_url ON event (url);
CREATE INDEX event_kind ON event (kind);
CREATE INDEX event_text ON event (url) WHERE new_text IS NOT NULL OR old_text IS NOT NULL;
