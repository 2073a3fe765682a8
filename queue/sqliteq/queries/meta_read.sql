SELECT id_key, epoch, next_seq, front, revision, enqueued, removed, scheduling FROM meta;
