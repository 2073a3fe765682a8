// A reactor that counts the words, lines and bytes of a text.
//
// Words and lines are what `LC_ALL=C.UTF-8 wc -w -l` counts in a text whose white space is that of ASCII: a word is a run of bytes
// that are not white space, a line ends with a newline. (In the locale C, wc of GNU coreutils 9.1 does not count words
// without a printable ASCII character.)
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/taskhost/taskhost/sdk/go/guest"
)

func init() { guest.Handle(handle) }

func main() {}

type counts struct {
	Words int64 `json:"words"`
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
}

func handle(_ context.Context, job *guest.Job) ([]byte, error) {
	c, err := count(job.Input())
	if err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// count reads r to its end in pieces, so that a text of any size needs little memory.
func count(r io.Reader) (c counts, err error) {
	in := bufio.NewReaderSize(r, 32<<10)
	word := false
	for {
		b, err := in.ReadByte()
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		c.Bytes++
		switch b {
		case '\n':
			c.Lines++
			word = false
		case ' ', '\t', '\v', '\f', '\r':
			word = false
		default:
			if !word {
				c.Words++
			}
			word = true
		}
	}
}
