UPDATE meta SET next_seq = ?, front = ?, revision = ?, enqueued = ?, removed = ?;
