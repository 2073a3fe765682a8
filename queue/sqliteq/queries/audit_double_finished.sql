SELECT count(*) FROM (SELECT seq FROM finished GROUP BY seq HAVING count(*) > 1);
