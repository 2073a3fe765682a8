package plugin

import (
	"maps"
	"os"
	"runtime"
	"slices"
)

// inherited are the variables of the host that a plugin gets: where programs and the user's files are, language, time zone, certificates.
// Everything else, credentials above all, stays with the host.
func inherited() []string {
	names := []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
	if runtime.GOOS == "windows" {
		names = append(names, "SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT")
	}
	return names
}

// environment is what a plugin starts with: inherited variables, what its Spec adds, and what go-plugin needs.
func environment(own map[string]string, library []string) []string {
	var env []string
	for _, name := range inherited() {
		if _, replaced := own[name]; replaced {
			continue
		}
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return append(env, library...)
}
