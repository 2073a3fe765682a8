DELETE FROM uniques WHERE tenant = ? AND key = ? AND seq = ?;
