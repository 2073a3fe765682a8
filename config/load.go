package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"
)

// delim separates levels inside koanf. No name of a queue or tenant may hold it.
const delim = "/"

// Source says where a configuration comes from.
type Source struct {
	File    string            // path; empty = no file
	Environ []string          // "NAME=value" as os.Environ gives them
	Flags   map[string]string // given flags by key path, e.g. "listen"; the text is read like a variable's
	Base    *Config           // the defaults; nil = Default()

	// Cron checks the cron spec of a schedule and its time zone, and says which of the two fields, "cron" or "tz", is at fault.
	// nil leaves them unchecked.
	Cron func(spec, tz string) (field string, err error)
}

// Loaded is a checked configuration.
type Loaded struct {
	Config  Config
	File    string   // as in Source
	Skipped []string // variables with the prefix that were taken for Kubernetes service links
}

// Load reads, merges and checks a configuration. Everything that is wrong is in one *Error.
func Load(src Source) (*Loaded, error) {
	var (
		problems []Problem
		file     *node
	)
	if src.File != "" {
		data, err := readFile(src.File)
		if err != nil {
			return nil, &Error{Problems: []Problem{{Source: src.File, Message: err.Error()}}}
		}
		var wrong []Problem
		file, wrong = parseFile(src.File, data)
		problems = append(problems, wrong...)
	}
	return load(src, file, problems)
}

// load merges the layers over an already parsed file.
func load(src Source, file *node, problems []Problem) (*Loaded, error) {
	s := schema()
	env, skipped, wrong := envTree(src.Environ, s, file)
	problems = append(problems, wrong...)

	ko := koanf.New(delim)
	for _, layer := range [...]struct {
		root *node
		base string
	}{{file, filepath.Dir(src.File)}, {env, ""}, {flagTree(src.Flags), ""}} {
		if layer.root == nil {
			continue
		}
		c := checker{base: layer.base}
		v, _ := c.walk(s, layer.root, layer.root.source, "")
		problems = append(problems, c.problems...)
		if layer.root == file {
			problems = append(problems, checkSchedules(file, src.Cron)...)
		}
		values, _ := v.(map[string]any)
		if err := ko.Load(confmap.Provider(values, ""), nil); err != nil {
			return nil, fmt.Errorf("merge the configuration: %w", err)
		}
	}
	if len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}

	cfg := Default()
	if src.Base != nil {
		cfg = *src.Base
		// Decoding writes into slices and maps that are there; those are the caller's.
		cfg.Roles, cfg.Worker.Queues, cfg.Handlers = slices.Clone(cfg.Roles), slices.Clone(cfg.Worker.Queues), slices.Clone(cfg.Handlers)
		cfg.Schedules, cfg.Plugins = slices.Clone(cfg.Schedules), slices.Clone(cfg.Plugins)
		cfg.Queues, cfg.Tenants = maps.Clone(cfg.Queues), maps.Clone(cfg.Tenants)
	}
	err := ko.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: &cfg, TagName: "koanf", ErrorUnused: true,
	}})
	if err != nil {
		return nil, fmt.Errorf("read the merged configuration: %w", err)
	}
	if err := cfg.Validate(); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && src.File != "" {
			for i := range e.Problems {
				e.Problems[i].Source = src.File
			}
		}
		return nil, err
	}
	return &Loaded{Config: cfg, File: src.File, Skipped: skipped}, nil
}

// readFile refuses what cannot be a configuration before reading it, so that --config /dev/zero is an error and not a hang.
func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("no such file")
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case info.Size() > FileMax:
		return nil, fmt.Errorf("the file has %d bytes, at most %d are read", info.Size(), FileMax)
	}
	data, err := os.ReadFile(name)
	return data, reason(err)
}

// reason drops the operation and the path, which the problem names already.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func flagTree(flags map[string]string) *node {
	root := &node{value: []member{}, source: "flags"}
	for _, key := range slices.Sorted(maps.Keys(flags)) {
		path := strings.Split(key, ".")
		insert(root, path, &node{value: flags[key], source: "--" + flagName(path), text: true})
	}
	return root
}

// flagName is the flag that sets a key: its last level, with hyphens.
func flagName(path []string) string {
	return strings.ReplaceAll(path[len(path)-1], "_", "-")
}
