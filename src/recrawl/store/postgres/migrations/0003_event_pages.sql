-- Newest events: of one page, of one kind, and of one page with texts.
CREATE INDEX event_url ON event (left(url, 500), number);
CREATE INDEX event_kind ON event (kind, number);
CREATE INDEX event_text ON event (left(url, 500), number) WHERE new_text IS NOT NULL OR old_text IS NOT NULL;
