package sqliteq_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/sqliteq"
)

func TestSecondOpenerIsRefused(t *testing.T) {
	t.Parallel()
	first := open(t, sqliteq.Options{})
	_, err := sqliteq.Open(t.Context(), sqliteq.Options{Path: first.Path()})
	var locked *sqliteq.LockedError
	if !errors.As(err, &locked) || !strings.Contains(err.Error(), first.Path()) {
		t.Fatalf("second Open: %v, want a LockedError that names %s", err, first.Path())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, sqliteq.Options{Path: first.Path()})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []sqliteq.Options{{}, {Dir: "a", Path: "b"}} {
		if _, err := sqliteq.Open(t.Context(), o); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("Open(%+v): %v, want ErrInvalid", o, err)
		}
	}
	// Names that mean something in a URI.
	dir := filepath.Join(t.TempDir(), "a b?mode=ro#100%25")
	s := open(t, sqliteq.Options{Dir: dir})
	if _, err := os.Stat(filepath.Join(dir, sqliteq.FileName)); err != nil || s.Path() != filepath.Join(dir, sqliteq.FileName) {
		t.Errorf("store at %s: %v", s.Path(), err)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqliteq.Open(t.Context(), sqliteq.Options{Dir: filepath.Join(file, "sub")}); err == nil {
		t.Error("a directory below a file was accepted")
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root may write to a read-only directory")
	}
	_, err := sqliteq.Open(t.Context(), sqliteq.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open in a read-only directory: %v, want an error that names it", err)
	}
}

func TestCorruptFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("not a database. "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqliteq.Open(t.Context(), sqliteq.Options{Path: path})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("Open: %v, want an error that names the file", err)
	}
	if content, _ := os.ReadFile(path); !bytes.HasPrefix(content, []byte("not a database")) {
		t.Error("Open changed a file that is not its own")
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, sqliteq.Options{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execSQL(t, s.Path(), "PRAGMA user_version = 99")
	_, err := sqliteq.Open(t.Context(), sqliteq.Options{Path: s.Path()})
	var newer *sqliteq.NewerSchemaError
	if !errors.As(err, &newer) || newer.Have != 99 || !strings.Contains(err.Error(), "schema 99") {
		t.Fatalf("Open: %v, want a NewerSchemaError", err)
	}
}

// execSQL changes the database behind the store's back.
func execSQL(t *testing.T, path, text string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
