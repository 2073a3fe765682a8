package sqliteq

import (
	"log/slog"
	"path/filepath"

	"github.com/taskhost/taskhost/queue"
)

// Options of Open.
type Options struct {
	// Dir is where the database lives, as FileName; it is made when it is missing. Path names the file itself instead. One of
	// the two is required.
	Dir  string
	Path string

	Clock  queue.Clock  // default queue.SystemClock()
	Limits queue.Limits // zero = queue.DefaultLimits()
	Logger *slog.Logger // default: discarded

	// CacheBytes bounds the records of waiting jobs in memory. Default CacheBytesDefault; negative: none.
	CacheBytes int
	// PageCacheBytes bounds SQLite's page cache of the writing connection; the reading ones have a quarter each. Default
	// PageCacheBytesDefault.
	PageCacheBytes int

	// Fatal is told, once, from the store's own goroutine, that an input/output error or damage was met: nobody knows then what
	// the disk holds, and the process should end and open the store again. The store itself answers every later call with
	// an error wrapping queue.ErrUnavailable. Fatal must not call the store.
	Fatal func(error)
}

// FileName is the database's name in Options.Dir.
const FileName = "taskhost.db"

// Defaults of Options.
const (
	CacheBytesDefault     = 64 << 20
	PageCacheBytesDefault = 32 << 20
)

func (o *Options) complete() error {
	switch {
	case o.Path == "" && o.Dir == "":
		return &queue.InvalidError{Field: "path", Reason: "a directory or a file must be given"}
	case o.Path == "":
		o.Path = filepath.Join(o.Dir, FileName)
	case o.Dir != "":
		return &queue.InvalidError{Field: "path", Reason: "a directory and a file cannot both be given"}
	}
	if o.Clock == nil {
		o.Clock = queue.SystemClock()
	}
	if o.Limits == (queue.Limits{}) {
		o.Limits = queue.DefaultLimits()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = CacheBytesDefault
	}
	if o.PageCacheBytes <= 0 {
		o.PageCacheBytes = PageCacheBytesDefault
	}
	return nil
}
