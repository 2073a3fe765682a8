package admission

import "github.com/taskhost/taskhost/abi"

// wasiFunctions is WASI preview 1, all of it, as parameters and results in one letter per value: i = i32, I = i64.
// https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
var wasiFunctions = map[string]string{
	"args_get":                "ii:i",
	"args_sizes_get":          "ii:i",
	"environ_get":             "ii:i",
	"environ_sizes_get":       "ii:i",
	"clock_res_get":           "ii:i",
	"clock_time_get":          "iIi:i",
	"fd_advise":               "iIIi:i",
	"fd_allocate":             "iII:i",
	"fd_close":                "i:i",
	"fd_datasync":             "i:i",
	"fd_fdstat_get":           "ii:i",
	"fd_fdstat_set_flags":     "ii:i",
	"fd_fdstat_set_rights":    "iII:i",
	"fd_filestat_get":         "ii:i",
	"fd_filestat_set_size":    "iI:i",
	"fd_filestat_set_times":   "iIIi:i",
	"fd_pread":                "iiiIi:i",
	"fd_prestat_get":          "ii:i",
	"fd_prestat_dir_name":     "iii:i",
	"fd_pwrite":               "iiiIi:i",
	"fd_read":                 "iiii:i",
	"fd_readdir":              "iiiIi:i",
	"fd_renumber":             "ii:i",
	"fd_seek":                 "iIii:i",
	"fd_sync":                 "i:i",
	"fd_tell":                 "ii:i",
	"fd_write":                "iiii:i",
	"path_create_directory":   "iii:i",
	"path_filestat_get":       "iiiii:i",
	"path_filestat_set_times": "iiiiIIi:i",
	"path_link":               "iiiiiii:i",
	"path_open":               "iiiiiIIii:i",
	"path_readlink":           "iiiiii:i",
	"path_remove_directory":   "iii:i",
	"path_rename":             "iiiiii:i",
	"path_symlink":            "iiiii:i",
	"path_unlink_file":        "iii:i",
	"poll_oneoff":             "iiii:i",
	"proc_exit":               "i:",
	"proc_raise":              "i:i",
	"random_get":              "ii:i",
	"sched_yield":             ":i",
	"sock_accept":             "iii:i",
	"sock_recv":               "iiiiii:i",
	"sock_send":               "iiiii:i",
	"sock_shutdown":           "ii:i",
}

// offered returns the signature of a function that the host offers, and whether it does.
func offered(module, name string) (string, bool) {
	switch module {
	case abi.ModuleWASI:
		text, ok := wasiFunctions[name]
		if !ok {
			return "", false
		}
		var params, results []byte
		into := &params
		for _, c := range text {
			switch c {
			case 'i':
				*into = append(*into, typeI32)
			case 'I':
				*into = append(*into, typeI64)
			case ':':
				into = &results
			}
		}
		return signature(params, results), true
	case abi.ModuleHost:
		for _, imp := range abi.HostImports() {
			if imp.Name == name {
				return signatureOf(imp.Params, imp.Results), true
			}
		}
	}
	return "", false
}
