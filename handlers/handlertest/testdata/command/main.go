// The conformance handler as a command: a program that knows nothing of its host. Its payloads are made by script.go.
package main

import (
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

var runs int

func complain(line string) { os.Stderr.WriteString(line + "\n") }

func main() {
	runs++
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	head, data, _ := strings.Cut(string(in), "\n")
	verb, arg, _ := strings.Cut(head, " ")
	number, _ := strconv.ParseInt(arg, 10, 64)
	switch verb {
	case "echo":
		os.Stdout.WriteString(data)
	case "exactly":
		os.Stdout.WriteString(strings.Repeat("x", int(number)))
	case "retry":
		complain(arg)
		os.Exit(75)
	case "permanent":
		complain(arg)
		os.Exit(65)
	case "log":
		complain(data)
	case "metadata":
		var all []string
		for _, key := range []string{"JOB_ID", "TENANT", "QUEUE", "TYPE", "ATTEMPT", "MAX_ATTEMPTS"} {
			all = append(all, os.Getenv("TASKHOST_"+key))
		}
		os.Stdout.WriteString(strings.Join(append(all, "none", os.Getenv("REGION")), " "))
	case "sleep":
		complain("running")
		time.Sleep(time.Duration(number) * time.Millisecond)
	case "spin":
		complain("running")
		for {
			runs++
		}
	case "count":
		os.Stdout.WriteString(strconv.Itoa(runs))
	case "trap":
		panic("the handler broke down")
	case "hog":
		for hog := [][]byte{}; ; {
			hog = append(hog, make([]byte, 1<<20))
		}
	default:
		complain("no verb " + verb)
		os.Exit(64)
	}
}
