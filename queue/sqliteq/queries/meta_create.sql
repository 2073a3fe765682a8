INSERT INTO meta (one, id_key, epoch, next_seq, front, revision, enqueued, removed) VALUES (1, ?, 0, 1, 0, 0, 0, 0);
