-- For a job whose record no longer says which key it holds.
DELETE FROM uniques WHERE seq = ?;
