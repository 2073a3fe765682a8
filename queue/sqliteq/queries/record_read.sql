SELECT value, revision FROM records WHERE kind = ? AND key = ?;
