package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The image and the compose file agree with each other and with go.mod. Building the image needs an engine for containers, which a
// test cannot count on; what can be read is read.
func TestImageAndComposeAgree(t *testing.T) {
	t.Parallel()
	dockerfile := read(t, "Dockerfile")
	find := func(name, pattern, text string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s: nothing matches %s", name, pattern)
		}
		return m[1]
	}
	goWanted := find("go.mod", `(?m)^go (\d+\.\d+)`, read(t, "go.mod"))
	if got := find("Dockerfile", `(?m)^FROM golang:(\S+) AS build$`, dockerfile); got != goWanted {
		t.Errorf("Dockerfile builds with Go %s, go.mod wants %s", got, goWanted)
	}
	if user := find("Dockerfile", `(?m)^USER (\d+):`, dockerfile); user == "0" {
		t.Error("the image runs as root")
	}

	var compose struct {
		Services map[string]struct {
			Build   string
			Ports   []string
			Volumes []string
			Grace   string `yaml:"stop_grace_period"`
			Restart string
			Image   string
			Init    bool
			Tmpfs   []string
			Check   map[string]any `yaml:"healthcheck"`

			ReadOnly bool     `yaml:"read_only"`
			CapDrop  []string `yaml:"cap_drop"`
			Security []string `yaml:"security_opt"`
		}
		Volumes map[string]any
	}
	d := yaml.NewDecoder(strings.NewReader(read(t, "compose.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&compose); err != nil {
		t.Fatalf("compose.yaml: %v", err)
	}
	s, ok := compose.Services["taskhost"]
	if !ok || s.Build != "." {
		t.Fatalf("compose.yaml: service taskhost is missing or not built here: %+v", compose.Services)
	}
	port := find("Dockerfile", `(?m)^EXPOSE (\d+)$`, dockerfile)
	if want := "127.0.0.1:" + port + ":" + port; !slices.Contains(s.Ports, want) {
		t.Errorf("compose.yaml publishes %q, want %q: loopback only", s.Ports, want)
	}
	if !strings.Contains(dockerfile, `"0.0.0.0:`+port+`"`) {
		t.Errorf("the image does not listen on its port %s", port)
	}
	data := find("Dockerfile", `(?m)^VOLUME (\S+)$`, dockerfile)
	for _, v := range s.Volumes {
		name, target, _ := strings.Cut(v, ":")
		if _, declared := compose.Volumes[name]; !declared || target != data {
			t.Errorf("volume %q: want a declared name and the image's %s", v, data)
		}
	}
	if len(s.Volumes) == 0 {
		t.Error("compose.yaml keeps the data nowhere")
	}
	if grace, err := time.ParseDuration(s.Grace); err != nil || grace <= 30*time.Second {
		t.Errorf("stop_grace_period %q: want more than the drain of 30 s (%v)", s.Grace, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
