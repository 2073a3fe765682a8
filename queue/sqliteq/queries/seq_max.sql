SELECT max(coalesce((SELECT max(seq) FROM jobs), 0), coalesce((SELECT max(pos) FROM jobs), 0));
