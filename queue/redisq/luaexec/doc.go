// Package luaexec runs the Lua scripts of the Redis store in the host, for a Redis that does not run scripts.
//
// # How
//
// The text is the one that Redis would run. redis.call reads from Redis, on one connection, after WATCH of a revision key; what the
// script writes is kept back (view), and later reads of the same run see it. At the end everything goes to Redis as one MULTI …
// EXEC that also raises the revision. Redis refuses that EXEC when the revision has changed, and the script runs again on what
// is there now. So a run happens whole, in one moment, or not at all, as in Redis. A run that only read ends with an EXEC too: what
// it returns was true in one moment.
//
//	SET lock · WATCH rev mark lock · TIME · GET mark · reads of the last runs        one round trip
//	reads that were not foreseen                                                     one each
//	MULTI · writes · INCR rev · DEL lock · EXEC                                      one round trip
//
// The lock decides nothing: it is there so that hosts wait for one another instead of spoiling each other's runs. A holder that
// dies delays the others by its time (Config.LockTime). A run that took longer than its lock is refused by EXEC when another
// one came between.
//
// Replies of writes are computed here, and compared with those of EXEC afterwards: a difference is an error (DifferError), never
// passed over.
//
// # What is the same as in Redis, and what is not
//
// Commands, cmsgpack, struct, number formats of redis.call and string.format, the bound of unpack, conversions of replies and of
// results, errors of redis.call and pcall are as in Redis; differential tests hold them against it. Globals that Redis does not
// allow are refused. Different by design:
//
//   - A script that raises an error has written nothing; Redis keeps what it wrote before. A script that returns an error has written.
//   - PUBSUB NUMSUB answers 1: who subscribes between the read and EXEC would be missed otherwise.
//   - A command whose result the script drops is not checked against the type of its key (WRONGTYPE) until EXEC.
//   - The order of HGETALL, HKEYS, HVALS and SMEMBERS, and of pairs(), is another one.
//   - tostring and .. write a number with up to 17 digits, Redis with 14; a string with a leading zero in arithmetic is octal. Scripts
//     use string.format and tonumber, which are exact.
//   - What a full Redis (maxmemory) still takes from a script with allow-oom it refuses from a transaction.
//
// Commands that are not listed in Supported are refused with an error that names them.
package luaexec
