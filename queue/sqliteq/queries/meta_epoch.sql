UPDATE meta SET epoch = ?;
