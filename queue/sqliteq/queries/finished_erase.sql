UPDATE finished SET record = ?, state = ? WHERE fin = ?;
