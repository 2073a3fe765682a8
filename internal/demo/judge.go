package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // reads JPEG
	"image/png"
	"os"
	"os/exec"
)

// counts are what the word count handlers answer.
type counts struct {
	Words int64 `json:"words"`
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
}

func (c counts) String() string { return fmt.Sprintf("%d words, %d lines", c.Words, c.Lines) }

// countWithWC counts with the system's wc in the locale C.UTF-8.
func countWithWC(ctx context.Context, file string) (c counts, err error) {
	cmd := exec.CommandContext(ctx, "wc", "-l", "-w", "-c", file)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	if err != nil {
		return c, fmt.Errorf("wc %s: %w", file, err)
	}
	if _, err := fmt.Fscan(bytes.NewReader(out), &c.Lines, &c.Words, &c.Bytes); err != nil {
		return c, fmt.Errorf("wc %s said %q: %w", file, out, err)
	}
	return c, nil
}

func (c counts) judge(result []byte) (string, error) {
	var got counts
	if err := json.Unmarshal(result, &got); err != nil {
		return "", fmt.Errorf("result %q: %w", result, err)
	}
	if got != c {
		return got.String(), fmt.Errorf("got %v, %d bytes, wc says %v, %d bytes", got, got.Bytes, c, c.Bytes)
	}
	return got.String(), nil
}

// size is that of a picture in pixels.
type size struct{ width, height int }

func (s size) String() string { return fmt.Sprintf("%d x %d", s.width, s.height) }

func sizeOf(file string) (size, error) {
	f, err := os.Open(file)
	if err != nil {
		return size{}, err
	}
	defer f.Close()
	c, _, err := image.DecodeConfig(f)
	if err != nil {
		return size{}, fmt.Errorf("%s: %w", file, err)
	}
	return size{c.Width, c.Height}, nil
}

// scaled is the size with its longer edge brought to edge, if it is longer.
func (s size) scaled(edge int) size {
	longer := max(s.width, s.height)
	if longer <= edge {
		return s
	}
	scale := func(n int) int { return max(1, (n*edge+longer/2)/longer) }
	return size{scale(s.width), scale(s.height)}
}

// judge decodes the whole picture, so that a PNG which is cut off or damaged is found too. One colour all over is no thumbnail of a
// photograph.
func (s size) judge(result []byte) (string, error) {
	picture, err := png.Decode(bytes.NewReader(result))
	if err != nil {
		return "", fmt.Errorf("result of %d bytes is no PNG: %w", len(result), err)
	}
	b := picture.Bounds()
	got := size{b.Dx(), b.Dy()}
	if got != s {
		return got.String(), fmt.Errorf("got %v pixels, want %v", got, s)
	}
	first := picture.At(b.Min.X, b.Min.Y)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if picture.At(x, y) != first {
				return got.String() + " PNG", nil
			}
		}
	}
	return got.String(), fmt.Errorf("the picture is empty: all pixels are %v", first)
}
