package sqliteq

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"modernc.org/sqlite"
)

// conn is one connection to the database, used by one goroutine at a time, with its prepared statements. It goes to the
// driver directly: measured on a single-row insert inside a transaction, database/sql takes a tenth more time and three
// times the memory, and its pool is of no use to a single writer.
type conn struct {
	dc    driver.Conn
	stmts map[string]driver.Stmt
	args  []driver.NamedValue
}

// dial opens a connection. readOnly connections cannot change anything. cacheBytes is the page cache.
func dial(ctx context.Context, path string, readOnly bool, cacheBytes int) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{dc: dc, stmts: make(map[string]driver.Stmt)}
	pragmas := []string{
		"PRAGMA busy_timeout = 10000",
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = FULL",
		"PRAGMA foreign_keys = ON",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA wal_autocheckpoint = 4000",
		"PRAGMA journal_size_limit = 67108864",
		"PRAGMA cache_size = -" + strconv.Itoa(max(cacheBytes, 1<<20)>>10),
	}
	if readOnly {
		pragmas = []string{pragmas[0], pragmas[4], pragmas[7], "PRAGMA query_only = ON"}
	}
	for _, p := range pragmas {
		if err := c.exec(ctx, p); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", p, err), c.close())
		}
	}
	return c, nil
}

func dsn(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()}).String()
}

func (c *conn) prepare(ctx context.Context, text string) (driver.Stmt, error) {
	if st := c.stmts[text]; st != nil {
		return st, nil
	}
	// The driver keeps a compiled statement only when nothing follows it; with the line end of a file behind the semicolon it
	// would compile the text again at every use.
	st, err := c.dc.(driver.ConnPrepareContext).PrepareContext(ctx, strings.TrimRight(text, "; \t\r\n"))
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, firstLine(text))
	}
	c.stmts[text] = st
	return st, nil
}

func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return c.args
}

// exec runs a statement that returns no rows. Its text is prepared once per connection.
func (c *conn) exec(ctx context.Context, text string, args ...driver.Value) error {
	st, err := c.prepare(ctx, text)
	if err != nil {
		return err
	}
	_, err = st.(driver.StmtExecContext).ExecContext(ctx, c.bind(args))
	return err
}

// script runs several statements that are not worth keeping.
func (c *conn) script(ctx context.Context, text string) error {
	_, err := c.dc.(driver.ExecerContext).ExecContext(ctx, text, nil)
	return err
}

// errStop ends a query early without an error.
var errStop = errors.New("stop")

// query calls each with every row; the slice is used again for the next row, the bytes in it are not.
func (c *conn) query(ctx context.Context, text string, each func(row []driver.Value) error, args ...driver.Value) error {
	st, err := c.prepare(ctx, text)
	if err != nil {
		return err
	}
	rows, err := st.(driver.StmtQueryContext).QueryContext(ctx, c.bind(args))
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err = rows.Next(row); err != nil {
			break
		}
		if err = each(row); err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errStop) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

// tx runs f between begin ("BEGIN", "BEGIN IMMEDIATE") and COMMIT, or ROLLBACK when f fails.
func (c *conn) tx(ctx context.Context, begin string, f func() error) error {
	if err := c.exec(ctx, begin); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = c.exec(ctx, "COMMIT")
	}
	if err != nil {
		c.rollback()
	}
	return err
}

// rollback ends a transaction if there is one; SQLite has ended it itself after some errors.
func (c *conn) rollback() {
	_ = c.exec(context.Background(), "ROLLBACK") // "no transaction is active" is what we want
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	c.stmts = nil
	return errors.Join(append(errs, c.dc.Close())...)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// Columns of a damaged row may hold anything; these never fail.

func asInt(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

func isInt(v driver.Value) bool {
	_, ok := v.(int64)
	return ok
}

func asBytes(v driver.Value) []byte {
	switch b := v.(type) {
	case []byte:
		return b
	case string:
		return []byte(b)
	}
	return nil
}

func asString(v driver.Value) string {
	switch b := v.(type) {
	case string:
		return b
	case []byte:
		return string(b)
	}
	return ""
}

// orNull is NULL for 0.
func orNull(n int64) driver.Value {
	if n == 0 {
		return nil
	}
	return n
}
