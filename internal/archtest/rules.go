package archtest

// Module is the path of the root module.
const Module = "github.com/taskhost/taskhost"

// A Room is a place in the package tree and what may be imported there. A package belongs to the room with the longest
// matching path. Everything the standard library offers may be imported everywhere.
type Room struct {
	Path  string   // relative to the module; "a/..." is a and everything below, "a" only itself
	May   []string // rooms of ours, same notation
	Third []string // modules or packages of others, by path prefix
	Tests []string // what test files may import besides, of ours (rooms) or others (with a dot in the first element)
}

// Rooms is the table of allowed arrows. A package without a room fails the check: a new one is a decision, made here.
func Rooms() []Room {
	const (
		wazero   = "github.com/tetratelabs/wazero"
		sqlite   = "modernc.org/sqlite"
		redis    = "github.com/redis/go-redis/v9"
		lua      = "github.com/yuin/gopher-lua"
		rapid    = "pgregory.net/rapid"
		goleak   = "go.uber.org/goleak"
		sys      = "golang.org/x/sys"
		grpc     = "google.golang.org/grpc"
		proto    = "google.golang.org/protobuf"
		uuid     = "github.com/google/uuid"
		koanf    = "github.com/knadh/koanf"
		yaml     = "github.com/goccy/go-yaml"
		yaml3    = "go.yaml.in/yaml/v3"
		toml     = "github.com/pelletier/go-toml/v2"
		structs  = "github.com/go-viper/mapstructure/v2"
		huma     = "github.com/danielgtaylor/huma/v2"
		cronspec = "github.com/netresearch/go-cron"
		prom     = "github.com/prometheus"
		cobra    = "github.com/spf13/cobra"
		pflag    = "github.com/spf13/pflag"
		human    = "github.com/dustin/go-humanize"
		isatty   = "github.com/mattn/go-isatty"
		term     = "golang.org/x/term"
		script   = "github.com/rogpeppe/go-internal"
		goplugin = "github.com/hashicorp/go-plugin"
		hclog    = "github.com/hashicorp/go-hclog"
	)
	anyTest := []string{goleak, rapid}
	return []Room{
		// Level 0: the words and the contracts.
		{Path: "abi"},
		{Path: "abi/pluginpb", Third: []string{grpc, proto}},
		{Path: "queue", Tests: anyTest},
		{Path: "queue/fair", Tests: anyTest},
		{Path: "queue/queuetest", May: []string{"queue", "queue/memq"}, Third: []string{rapid}, Tests: anyTest},
		{Path: "queue/memq", May: []string{"queue"}, Tests: append(anyTest, "queue/queuetest")},
		{Path: "queue/sqliteq/...", May: []string{"queue", "queue/fair", "queue/sqliteq/..."}, Third: []string{sqlite, "modernc.org/libc", sys},
			Tests: append(anyTest, "queue/queuetest", "queue/memq")},
		{Path: "queue/redisq", May: []string{"queue", "queue/fair", "queue/redisq/luaexec"}, Third: []string{redis},
			Tests: append(anyTest, "queue/queuetest", "queue/memq", "queue/redisq/redistest")},
		{Path: "queue/redisq/luaexec", Third: []string{redis, lua}, Tests: append(anyTest, "queue/redisq/redistest")},
		{Path: "queue/redisq/redistest"},
		{Path: "config", Third: []string{koanf, yaml, yaml3, toml, structs, sys}, Tests: anyTest},

		// Level 1: what runs a job.
		{Path: "handlers", May: []string{"abi"}, Tests: anyTest},
		{Path: "handlers/handlertest/...", May: []string{"abi", "handlers", "handlers/handlertest/..."}, Tests: anyTest},
		{Path: "handlers/wasm/...", May: []string{"abi", "abi/pluginpb", "handlers", "handlers/wasm/..."},
			Third: []string{sys, grpc, proto}, Tests: append(anyTest, "handlers/handlertest/...", wazero)},
		{Path: "handlers/wasm/engine/...", May: []string{"abi", "abi/pluginpb", "handlers", "handlers/wasm/..."}, Third: []string{wazero, sys},
			Tests: append(anyTest, "handlers/handlertest/...")},

		{Path: "handlers/session", May: []string{"abi", "abi/pluginpb", "handlers", "handlers/wasm/link"}, Third: []string{grpc, proto},
			Tests: append(anyTest, "handlers/handlertest/...")},
		{Path: "handlers/plugin", May: []string{"abi", "abi/pluginpb", "handlers", "handlers/session", "handlers/wasm/child"},
			Third: []string{goplugin, hclog, grpc, sys}, Tests: append(anyTest, "handlers/handlertest/...", proto)},

		// Level 2: the host translates between the two.
		{Path: "host/...", May: []string{"abi", "queue", "handlers", "host/..."}, Third: []string{uuid, sys, prom},
			Tests: append(anyTest, "queue/memq", "queue/queuetest", "queue/sqliteq", "handlers/handlertest/...")},
		{Path: "host/schedules/...", May: []string{"queue", "host/lifecycle/...", "host/outage", "host/hosttest"}, Third: []string{cronspec},
			Tests: append(anyTest, "queue/memq", "queue/sqliteq")},
		{Path: "host/httpapi/...", May: []string{"abi", "queue", "handlers", "host/..."}, Third: []string{huma, uuid, prom},
			Tests: append(anyTest, "queue/memq", "queue/queuetest", "queue/sqliteq", "handlers/handlertest/...")},

		// The binary. wire alone knows engines and runtimes.
		{Path: "cmd/taskhost", May: []string{"cmd/taskhost/internal/cli"}, Tests: []string{script, goleak}},
		{Path: "cmd/taskhost/internal/...", Third: []string{sys, uuid, yaml, yaml3, human}, Tests: []string{script, goleak}},
		// cli knows config (it prints and checks it) and the words of an outcome (a local run has one).
		{Path: "cmd/taskhost/internal/cli/...", May: []string{"config", "handlers", "cmd/taskhost/internal/..."},
			Third: []string{cobra, pflag, human, isatty, term, sys, yaml, yaml3}, Tests: []string{script, goleak}},
		{Path: "cmd/taskhost/internal/wire/...", May: []string{"abi", "config", "host/...", "queue", "queue/memq", "queue/sqliteq/...", "queue/redisq/...",
			"handlers", "handlers/wasm/...", "handlers/plugin", "cmd/taskhost/internal/wire/...", "cmd/taskhost/internal/samples"}, Third: []string{prom, sys, redis},
			Tests: []string{script, goleak}},
		{Path: "cmd/taskhost/internal/samples/...", May: []string{"cmd/taskhost/internal/samples/..."}, Tests: []string{"abi", wazero}},
		{Path: "cmd/taskhost/internal/e2e/...", May: []string{"cmd/taskhost/internal/e2e/..."},
			Tests: []string{script, goleak, "abi", "internal/demo", "handlers/wasm/wasmtest", "queue/redisq/redistest", "cmd/taskhost/internal/..."}},

		// The SDK, a module of its own: what handlers and producers link is the standard library.
		{Path: "sdk/go/guest", Tests: []string{"sdk/go/guest/guesttest"}},
		{Path: "sdk/go/guest/guesttest", May: []string{"sdk/go/guest"}, Tests: []string{"sdk/go/guest/testdata/..."}},
		{Path: "sdk/go/guest/testdata/...", May: []string{"sdk/go/guest"}},
		{Path: "sdk/go/client/...", May: []string{"sdk/go/client/..."}},
		// The SDK for native plugins is yet another module, because it needs gRPC.
		{Path: "sdk/go/plugin/...", May: []string{"sdk/go/plugin/..."}, Third: []string{goplugin, hclog, grpc, proto}, Tests: []string{goleak}},

		// Tools of the repository; nothing of the product.
		{Path: "internal/archtest", Tests: []string{yaml3}},
		{Path: "internal/testsum"},
		{Path: "internal/demo/...", May: []string{"internal/demo/..."}},
	}
}

// MayHoldState are the rooms where a package variable may change: the guest SDK, whose exported function has no arguments and
// must find the module's handler somewhere, and test programs.
func MayHoldState() []string {
	return []string{"sdk/go/guest", "sdk/go/guest/testdata/..."}
}

// FileLimits are the most lines a file may have, by what its name ends in; the longest ending counts.
func FileLimits() map[string]int {
	return map[string]int{".go": 600, "_test.go": 900, ".lua": 150, ".c": 600, ".h": 600, ".sh": 200}
}

// Generated are endings of generated files, which have no limit.
func Generated() []string { return []string{".pb.go"} }

// BadPackageNames are names that say nothing about what is inside.
func BadPackageNames() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "shared", "lib"}
}

// Unfinished are marks of unfinished work; the pattern is matched against every line of source and documentation.
const Unfinished = `\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`

// HomePath matches absolute paths of somebody's machine.
const HomePath = `(^|[\s"'(=:])/(home|root|Users|work|workspace)/\w`
