SELECT seq, birth FROM jobs WHERE seq >= ? ORDER BY seq LIMIT 1;
