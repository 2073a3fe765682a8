package sqliteq

import (
	"context"
	"database/sql/driver"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration brings the schema from version-1 to version.
type migration struct {
	version int
	text    string
}

// migrations reads files named <version>_<what>.sql; the versions must be 1, 2, 3, …
func migrations(files fs.FS, dir string) ([]migration, error) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, err
	}
	var list []migration
	for i, e := range entries { // by name
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want a name that begins with %03d_", e.Name(), i+1)
		}
		text, err := fs.ReadFile(files, dir+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, migration{version: version, text: string(text)})
	}
	return list, nil
}

// NewerSchemaError says that a store was written by a newer release.
type NewerSchemaError struct {
	Path      string
	Have      int // schema of the store
	Supported int // newest that this release knows
}

func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("%s has schema %d, this release knows schemas up to %d: use the release that wrote it, or a newer one",
		e.Path, e.Have, e.Supported)
}

// migrate brings the database to the newest schema. Before it changes an older one it copies the file to
// <path>.schema<N>.bak.
func migrate(ctx context.Context, c *conn, path string, list []migration) error {
	have, err := schemaVersion(ctx, c)
	if err != nil {
		return err
	}
	newest := len(list)
	if have > newest {
		return &NewerSchemaError{Path: path, Have: have, Supported: newest}
	}
	if have == newest {
		return nil
	}
	if have > 0 {
		if err := backup(ctx, c, fmt.Sprintf("%s.schema%d.bak", path, have)); err != nil {
			return fmt.Errorf("copy the store before its schema changes: %w", err)
		}
	}
	return c.tx(ctx, "BEGIN IMMEDIATE", func() error {
		for _, m := range list[have:] {
			if err := c.script(ctx, m.text); err != nil {
				return fmt.Errorf("migration %03d: %w", m.version, err)
			}
		}
		return c.script(ctx, "PRAGMA user_version = "+strconv.Itoa(newest))
	})
}

// schemaVersion is 0 for an empty database.
func schemaVersion(ctx context.Context, c *conn) (version int, err error) {
	err = c.query(ctx, "PRAGMA user_version", func(row []driver.Value) error {
		version = int(asInt(row[0]))
		return nil
	})
	return version, err
}

// backup writes a consistent copy; an older copy of that name is replaced only once the new one is complete.
func backup(ctx context.Context, c *conn, to string) error {
	part := to + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := c.exec(ctx, "VACUUM INTO ?", part); err != nil {
		return err
	}
	return os.Rename(part, to)
}
