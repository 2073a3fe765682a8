package cli

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder without a store is an error, and is left as it was.
func TestStoreCheckMakesNoStore(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	missing := filepath.Join(empty, "nodata")
	for _, dir := range []string{missing, empty} {
		out, errs, code := run(t, "", "store", "check", "--data-dir", dir)
		if code != ExitNotFound || out != "" || !strings.Contains(errs, "no store in "+dir) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", dir, code, out, errs)
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
	if list, err := os.ReadDir(empty); err != nil || len(list) != 0 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
}

// Only a store on Redis has a mode.
func TestStoreMode(t *testing.T) {
	t.Parallel()
	out, errs, code := run(t, "", "store", "mode", "--data-dir", t.TempDir())
	if code == ExitOK || out != "" || !strings.Contains(errs, "only a store on Redis has a mode") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	_, errs, code = run(t, "", "store", "mode", "--store", "redis://127.0.0.1:1/0?lua=0")
	if code != ExitUnreachable || !strings.Contains(errs, "cannot reach the store") {
		t.Errorf("exit code %d, stderr %q", code, errs)
	}
}

// A Redis that is down ends the command; only a server waits for it.
func TestStoreCheckDoesNotWaitForRedis(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	out, errs, code := run(t, "", "store", "check", "--store", "redis://user:hidden@"+addr+"/0")
	if code != ExitUnreachable || out != "" || !strings.Contains(errs, "cannot reach the store") || !strings.Contains(errs, addr) || strings.Contains(errs, "hidden") {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
}
