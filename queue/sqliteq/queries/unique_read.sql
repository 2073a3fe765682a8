SELECT seq, birth FROM uniques WHERE tenant = ? AND key = ?;
