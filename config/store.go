package config

import "strings"

// StoreSQLite is the name of the embedded store.
const StoreSQLite = "sqlite"

// IsRedis reports whether a store is named by the URL of a Redis. Whether the URL is right is for the engine to say.
func IsRedis(store string) bool {
	scheme, _, ok := strings.Cut(store, "://")
	scheme = strings.TrimSuffix(scheme, "+sentinel")
	return ok && (scheme == "redis" || scheme == "rediss")
}
