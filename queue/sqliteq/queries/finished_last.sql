SELECT fin FROM finished WHERE fin < ? ORDER BY fin DESC LIMIT 1;
