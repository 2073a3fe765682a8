// The Go guest of the metering measurements: each export does a fixed amount of ordinary work and returns a check value.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"regexp"
	"sort"
	"strings"
)

var (
	text    = strings.Repeat("the quick brown fox jumps over 1,234 lazy dogs at noon; mail fox@example.com or call 555-0199\n", 400)
	pattern = regexp.MustCompile(`[a-z]+@[a-z]+\.(com|org)|\d{3}-\d{4}`)
)

type item struct {
	ID   int               `json:"id"`
	Name string            `json:"name"`
	Tags []string          `json:"tags"`
	Meta map[string]string `json:"meta"`
}

//go:wasmexport b_sha256
func benchSHA256() uint64 {
	sum := sha256.Sum256([]byte(text))
	for range 20 {
		sum = sha256.Sum256(append([]byte(text), sum[:]...))
	}
	return binary.LittleEndian.Uint64(sum[:])
}

//go:wasmexport b_json
func benchJSON() uint64 {
	items := make([]item, 200)
	for i := range items {
		items[i] = item{i, fmt.Sprint("item ", i), []string{"a", "b", "c"}, map[string]string{"k": "v"}}
	}
	n := 0
	for range 5 {
		b, err := json.Marshal(items)
		if err != nil {
			panic(err)
		}
		var back []item
		if err := json.Unmarshal(b, &back); err != nil {
			panic(err)
		}
		n += len(b) + len(back)
	}
	return uint64(n)
}

//go:wasmexport b_sort
func benchSort() uint64 {
	v := make([]int, 60_000)
	x := uint32(1)
	for i := range v {
		x = x*1664525 + 1013904223
		v[i] = int(x >> 8)
	}
	sort.Ints(v)
	return uint64(v[0]) + uint64(v[len(v)/2])<<20
}

//go:wasmexport b_regex
func benchRegex() uint64 { return uint64(len(pattern.FindAllStringIndex(text, -1))) }

//go:wasmexport b_words
func benchWords() uint64 {
	counts := map[string]int{}
	for range 3 {
		for _, w := range strings.Fields(text) {
			counts[strings.ToLower(w)]++
		}
	}
	return uint64(len(counts)) + uint64(counts["the"])<<16
}

//go:wasmexport b_resize
func benchResize() uint64 {
	src := image.NewRGBA(image.Rect(0, 0, 400, 300))
	for y := range 300 {
		for x := range 400 {
			src.SetRGBA(x, y, color.RGBA{uint8(x), uint8(y), uint8(x ^ y), 255})
		}
	}
	var check uint64
	for y := range 75 {
		for x := range 100 {
			var r, g, b uint32
			for dy := range 4 {
				for dx := range 4 {
					c := src.RGBAAt(4*x+dx, 4*y+dy)
					r, g, b = r+uint32(c.R), g+uint32(c.G), b+uint32(c.B)
				}
			}
			check = check*31 + uint64(r/16) + uint64(g/16)<<8 + uint64(b/16)<<16
		}
	}
	return check
}

func main() {}
