package cli

import "testing"

func TestTestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ self, want string }{
		{"taskhost", "cd resize && taskhost handler test"},
		{"/opt/taskhost", "cd resize && /opt/taskhost handler test"},
		{"./bin/taskhost", "./bin/taskhost handler test resize"},
		{"go run ./cmd/taskhost", "go run ./cmd/taskhost handler test resize"},
	} {
		if got := testNext(c.self, "resize"); got != c.want {
			t.Errorf("%s: %s, want %s", c.self, got, c.want)
		}
	}
}
