// A command that does what the first word of its input says.
package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

func print(all ...string) {
	for _, s := range all {
		os.Stdout.WriteString(s)
	}
}

func main() {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	verb, rest, _ := strings.Cut(string(in), " ")
	switch verb {
	case "echo":
		print(rest)
	case "env":
		print(os.Args[0], " ", strings.Join(os.Environ(), " "))
	case "exit":
		code, err := strconv.Atoi(rest)
		if err != nil {
			panic(err)
		}
		os.Stderr.WriteString("going to exit\nlast words\n")
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
		print(strconv.FormatBool(time.Since(start) >= d))
	case "files":
		for _, err := range []error{
			os.WriteFile("/etc/passwd", nil, 0o600), os.Mkdir("x", 0o700), os.Symlink("../../../etc/passwd", "l"), os.Rename("a", "b"), os.Remove("a"),
		} {
			print(err.Error(), "\n")
		}
		_, err := os.ReadFile("../../../etc/passwd")
		print(err.Error(), "\n")
		_, err = os.ReadDir("/")
		print(err.Error(), "\n")
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
		print("lost")
	}
}
