SELECT seq, birth FROM finished INDEXED BY finished_job WHERE tenant = ? AND seq >= ? ORDER BY seq LIMIT 1;
