package wire

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/taskhost/taskhost/host/httpapi"
)

// release is the version of this source, unless the program was built from a tagged module.
const release = "0.1.0"

// VersionInfo says what is running.
type VersionInfo = httpapi.Version

// Version reads the build information. commit is what the linker was told, "" = nothing.
func Version(commit string) VersionInfo {
	v := VersionInfo{Version: release, Commit: commit, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	// A pseudo-version or "(devel)" says less than the release it was on the way to.
	if tag := strings.TrimPrefix(info.Main.Version, "v"); tag != "" && !strings.ContainsAny(tag, "-+(") {
		v.Version = tag
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v.Commit == "" {
			v.Commit = s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
