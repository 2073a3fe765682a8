UPDATE queues SET served = ? WHERE id = ?;
