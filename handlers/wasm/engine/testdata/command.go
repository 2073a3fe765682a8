// A command that does what the first word of its input says.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	verb, rest, _ := strings.Cut(string(in), " ")
	switch verb {
	case "echo":
		fmt.Print(rest)
	case "env":
		fmt.Println(os.Args[0], strings.Join(os.Environ(), " "))
	case "exit":
		var code int
		fmt.Sscan(rest, &code)
		fmt.Fprintln(os.Stderr, "going to exit")
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(code)
	case "panic":
		panic(rest)
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			panic(err)
		}
		start := time.Now()
		time.Sleep(d)
		fmt.Print(time.Since(start) >= d)
	case "files":
		for _, err := range []error{
			os.WriteFile("/etc/passwd", nil, 0o600), os.Mkdir("x", 0o700), os.Symlink("../../../etc/passwd", "l"), os.Rename("a", "b"), os.Remove("a"),
		} {
			fmt.Println(err)
		}
		_, err := os.ReadFile("../../../etc/passwd")
		fmt.Println(err)
		_, err = os.ReadDir("/")
		fmt.Println(err)
	case "hog":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			for i := range all[len(all)-1] {
				all[len(all)-1][i] = 1
			}
		}
	case "close":
		os.Stdout.Close()
		fmt.Print("lost")
	}
}
