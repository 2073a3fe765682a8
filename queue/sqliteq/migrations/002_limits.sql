-- Overrides of the limits of a queue, NULL where nothing is set; a rate as queue.Rate writes itself. Records of jobs may carry
-- a concurrency key from here on, which releases that know schema 1 only could not read.
ALTER TABLE queues ADD COLUMN max_running INTEGER;
ALTER TABLE queues ADD COLUMN max_per_key INTEGER;
ALTER TABLE queues ADD COLUMN rate TEXT;
