package config

import "strings"

// StoreSQLite is the name of the embedded store.
const StoreSQLite = "sqlite"

// IsRedis reports whether a store is named by the URL of a Redis. Whether the URL is right is for the engine to say.
func IsRedis(store string) bool {
	return strings.HasPrefix(store, "redis://") || strings.HasPrefix(store, "rediss://")
}
