-- When a unique key becomes free that is held for a time; NULL while it is held for as long as its job is unfinished. Records of jobs
-- may carry such a window, or say that they were erased, from here on, which releases that know schema 2 only could not read.
ALTER TABLE uniques ADD COLUMN expires_at INTEGER;
CREATE INDEX uniques_expiry ON uniques (expires_at) WHERE expires_at IS NOT NULL;
