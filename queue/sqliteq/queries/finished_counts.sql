SELECT outcome, count(*) FROM finished GROUP BY outcome;
