SELECT queue, count(*) FROM finished WHERE outcome = 5 GROUP BY queue;
