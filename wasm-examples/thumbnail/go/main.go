// A command that makes a thumbnail: a JPEG or PNG on standard input, a PNG on standard output. It uses no SDK.
//
// The longer edge gets THUMB_SIZE pixels (default 128); smaller pictures keep their size. THUMB_SIZE is configuration of the
// handler, which a command finds in its environment.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // decodes JPEG
	"image/png"
	"io"
	"os"
	"strconv"

	"golang.org/x/image/draw"
)

// Exit codes of the contract; see abi/SPEC.md §2.
const (
	exitRetry     = 75
	exitDataError = 65
	exitConfig    = 78
)

const (
	defaultSize = 128
	maxSize     = 4096
	maxPixels   = 50_000_000 // of the picture given, so that a small file cannot ask for all the memory
)

func main() {
	if err := run(os.Stdin, os.Stdout, os.Getenv("THUMB_SIZE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitCode(err))
	}
}

// The faults that no further attempt can mend.
var (
	errPicture = errors.New("not a picture this handler can read")
	errConfig  = errors.New("bad THUMB_SIZE")
)

func exitCode(err error) int {
	switch {
	case errors.Is(err, errPicture):
		return exitDataError
	case errors.Is(err, errConfig):
		return exitConfig
	}
	return exitRetry
}

func run(in io.Reader, out io.Writer, setting string) error {
	size, err := edge(setting)
	if err != nil {
		return err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	head, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", errPicture, err)
	}
	if head.Width < 1 || head.Height < 1 || head.Width > maxPixels/head.Height {
		return fmt.Errorf("%w: %d x %d pixels, at most %d in all", errPicture, head.Width, head.Height, maxPixels)
	}
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", errPicture, err)
	}
	return png.Encode(out, thumbnail(picture, size))
}

func edge(setting string) (int, error) {
	if setting == "" {
		return defaultSize, nil
	}
	n, err := strconv.Atoi(setting)
	if err != nil || n < 1 || n > maxSize {
		return 0, fmt.Errorf("%w %q: want a number of pixels from 1 to %d", errConfig, setting, maxSize)
	}
	return n, nil
}

// thumbnail scales the picture so that its longer edge is size; it never enlarges.
func thumbnail(picture image.Image, size int) image.Image {
	w, h := picture.Bounds().Dx(), picture.Bounds().Dy()
	longer := max(w, h)
	if longer <= size {
		return picture
	}
	scale := func(n int) int { return max(1, (n*size+longer/2)/longer) }
	small := image.NewNRGBA(image.Rect(0, 0, scale(w), scale(h)))
	draw.CatmullRom.Scale(small, small.Bounds(), picture, picture.Bounds(), draw.Src, nil)
	return small
}
