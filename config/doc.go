// Package config turns a file, the environment and flags into one plain, checked Config. It imports nothing else of
// taskhost: who needs a setting gets it in its own options (cmd/taskhost/internal/wire translates).
//
// # Where a setting comes from
//
// Flags win over the environment, that over the file, that over the defaults (Default). Maps (queues, tenants) are merged
// key by key; lists (roles, worker.queues, handlers) are replaced whole.
//
//   - REFERENCE.md lists every key. The file is YAML, TOML or JSON by its extension. Paths in it are relative to the folder of the file, paths in
//     flags and variables to the working directory.
//   - A variable is TASKHOST_ and the path of the key in capitals, with two underscores between levels:
//     TASKHOST_WORKER__LEASE=20s, TASKHOST_QUEUES__HIGH_PRIO__WEIGHT=5. A queue or tenant is the one of the file whose name
//     looks the same in capitals with every other character as an underscore, else a new one in lower case. Lists are
//     separated by commas. handlers can be set in the file only.
//   - A TASKHOST_ variable that matches no key is an error which names the nearest one, except those of the client commands
//     (TASKHOST_SERVER, TASKHOST_API_KEY), TASKHOST_CONFIG, and the links that Kubernetes adds for a service called
//     taskhost; Loaded.Skipped names the links.
//
// # Strictness
//
// Unknown and duplicate keys, wrong types and values out of range are errors, all of them reported at once as Problems with
// file and line, path and what is allowed. In a file a number is a number: the string "3" is refused where 3 is meant, and
// so are null, .inf and .nan. (In variables and flags everything is text, and is read as the key asks.) A key of a later version
// is refused as such, never ignored.
//
// Durations are text with units, "90s", "1h30m", "30d"; sizes too, "64MiB" (KiB, MiB, GiB) or "64MB" (kB, MB, GB) or "1000B".
package config
