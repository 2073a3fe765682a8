// The plugin that the tests of the host run: its handler does what the payload says. A payload is a verb, a space, an argument, a line break,
// and data.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/taskhost/taskhost/sdk/go/plugin"
)

func main() {
	if line := os.Getenv("SCRIPTED_PRINT"); line != "" {
		fmt.Println(line) // before the handshake, which it must not
	}
	if n, err := strconv.Atoi(os.Getenv("SCRIPTED_PRINT_BYTES")); err == nil {
		fmt.Println(strings.Repeat("x", n))
	}
	if os.Getenv("SCRIPTED_MUTE") != "" {
		<-time.After(time.Hour) // neither a handshake nor an end
	}
	if gate := os.Getenv("SCRIPTED_MUTE_ONCE"); gate != "" {
		if f, err := os.OpenFile(gate, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			f.Close()
			<-time.After(time.Hour)
		}
	}
	s := &scripted{}
	concurrency := 64
	if n, err := strconv.Atoi(os.Getenv("SCRIPTED_SLOTS")); err == nil {
		concurrency = n
	}
	plugin.Serve(plugin.Handlers{"scripted": s.handle, "scripted.*": s.handle}, plugin.Concurrency(concurrency))
}

type scripted struct{ runs atomic.Int64 }

func (s *scripted) handle(ctx context.Context, job *plugin.Job) ([]byte, error) {
	runs := s.runs.Add(1)
	head, data, _ := bytes.Cut(job.Payload(), []byte("\n"))
	verb, arg, _ := strings.Cut(string(head), " ")
	number, _ := strconv.Atoi(arg) // what needs one has one
	switch verb {
	case "echo":
		return data, nil
	case "exactly":
		return bytes.Repeat([]byte("x"), number), nil
	case "retry":
		return nil, errors.New(arg)
	case "permanent":
		return nil, plugin.Permanent(errors.New(arg))
	case "defer":
		return nil, plugin.Defer(time.Duration(number) * time.Millisecond)
	case "log":
		for line := range strings.SplitSeq(string(data), "\n") {
			job.Log(plugin.LevelInfo, line)
		}
		return nil, nil
	case "progress":
		job.Progress(1, 2, "running")
		return nil, nil
	case "checkpoint":
		return checkpoint(job, data)
	case "read-checkpoint":
		saved := job.Checkpoint()
		if saved == nil {
			return nil, plugin.Permanent(errors.New("no checkpoint"))
		}
		return saved, nil
	case "metadata":
		trace, _ := job.Header("trace")
		region, _ := job.Config("REGION")
		return fmt.Appendf(nil, "%s %s %s %s %d %d %s %s", job.ID(), job.Tenant(), job.Queue(), job.Type(), job.Attempt(), job.MaxAttempts(), trace, region), nil
	case "count":
		return []byte(strconv.FormatInt(runs, 10)), nil
	case "trap":
		panic("the handler broke down")
	}
	return s.misbehave(ctx, job, verb, number)
}

func checkpoint(job *plugin.Job, data []byte) ([]byte, error) {
	err := job.SaveCheckpoint(data)
	var errno plugin.Errno
	if err != nil && !errors.As(err, &errno) {
		return nil, err
	}
	return []byte(strconv.Itoa(int(errno))), nil
}

// misbehave is what a well-written handler does not do.
func (s *scripted) misbehave(ctx context.Context, job *plugin.Job, verb string, number int) ([]byte, error) {
	job.Progress(1, 2, "running")
	switch verb {
	case "sleep":
		select {
		case <-time.After(time.Duration(number) * time.Millisecond):
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	case "until-stopped":
		<-ctx.Done()
		return nil, errors.New("told to stop")
	case "hang": // deaf to every request to stop
		<-time.After(time.Duration(number) * time.Millisecond)
		return nil, nil
	case "spin":
		for {
			s.runs.Add(1)
		}
	case "crash": // a panic that no handler can catch
		go panic("boom at " + job.ID())
		select {}
	case "exit":
		fmt.Fprintln(os.Stderr, "giving up")
		os.Exit(number)
	case "flood": // that many MiB in lines of 10 MiB on standard error, and a lot of short ones on both
		line := bytes.Repeat([]byte("f"), 10<<20)
		for done := 0; done < number; done += 10 {
			os.Stderr.Write(append(line, '\n'))
		}
		for range 100_000 {
			fmt.Println("short line")
		}
		return []byte("flooded"), nil
	case "child": // a process of its own; its number is the result
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		go func() { _ = cmd.Wait() }()
		return []byte(strconv.Itoa(cmd.Process.Pid)), nil
	case "environment":
		return []byte(strings.Join(os.Environ(), "\n")), nil
	case "descriptors":
		entries, err := os.ReadDir("/proc/self/fd")
		return fmt.Appendf(nil, "%d", len(entries)), err
	}
	return nil, plugin.Permanent(errors.New("no verb " + verb))
}
