// Package redisq is the store on one Redis (7.0 or newer) that many hosts share. Every step of a job's life is one Lua script, so
// it happens whole or not at all, in the store's own time (Redis TIME).
//
// # Where things are
//
// keys.go lists every key. lua/*.lua has one script per verb, lua/lib/*.lua what they share; script.go puts them together, loads
// them and sends them. One Go file per verb prepares its arguments and reads its answer.
//
// # What holds
//
// The rule of FAIRNESS.md costs O(log n) per job in the number of tenants and queues. Who waits, blocks: a Wait that finds
// nothing blocks on the lists of hints of its queues (wait.go); nothing polls. A hint that a host took and died with is given
// again a second later. A reservation is a field in the HASH of its batch, named by an
// unguessable token: what is not there any more cannot be settled, extended or noted. A call whose reply was lost is sent
// again under the same number and changes nothing the second time (lane.go).
//
// # Without Lua
//
// With ?lua=0 the same scripts run in the host (nolua.go, package luaexec), for a Redis that does not run scripts. A store has one mode.
//
// # What is left out, and named
//
// Open refuses Cluster. Behind Sentinels it finds the master, but a failover has not been played through yet. Some scripts cost
// more than their share of a very large store, and run rarely: the first use of a view, Configure with another configuration, and Audit look at every line that is not empty; the last
// two, and SetQueue with a cap where none was, at every job that runs.
package redisq
