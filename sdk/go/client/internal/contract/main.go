// Command contract drives the client against a real server and reports what does not agree. The server's own tests run it;
// on their side an echo handler gives every job of type "echo" its payload back, and fails those of type "fail".
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/taskhost/taskhost/sdk/go/client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: contract SERVER-URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
	fmt.Println("contract: ok")
}

func run(ctx context.Context, server string) error {
	c, err := client.New(server)
	if err != nil {
		return err
	}
	defer c.Close()
	return errors.Join(success(ctx, c), failure(ctx, c), batch(ctx, c), steering(ctx, c), refusals(ctx, c))
}

func success(ctx context.Context, c *client.Client) error {
	for _, payload := range []any{json.RawMessage(`{"n":9007199254740993,  "x":1e400,"k":1,"k":2}`), []byte{0xff, 0xfe, 0}, []byte{}} {
		want, _ := payload.([]byte)
		if raw, ok := payload.(json.RawMessage); ok {
			want = raw
		}
		priority := 1
		e, err := c.Enqueue(ctx, client.NewJob{
			Type: "echo", Queue: "contract", Payload: payload, Priority: &priority, ExpiresIn: time.Hour, Timeout: time.Minute, MaxAttempts: 2,
			Backoff: &client.Backoff{Base: time.Second, Max: time.Minute, Jitter: "none"}, Unique: &client.Unique{Key: "u", Until: "started"},
			Labels: map[string]string{"l": "1"}, Headers: map[string]string{"h": "2"},
		})
		if err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		j, err := c.Wait(ctx, e.ID)
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if j.Err() != nil || j.Queue != "contract" || j.Labels["l"] != "1" || j.FinishedAt == nil || len(j.Attempts) != 1 || j.CreatedAt.IsZero() {
			return fmt.Errorf("the finished job is %+v", j)
		}
		result, err := c.Result(ctx, e.ID)
		if err != nil || !bytes.Equal(result, want) {
			return fmt.Errorf("result %q of %q: %w", result, want, err)
		}
		if sent, err := c.Payload(ctx, e.ID); err != nil || !bytes.Equal(sent, want) {
			return fmt.Errorf("payload %q of %q: %w", sent, want, err)
		}
	}
	return nil
}

func failure(ctx context.Context, c *client.Client) error {
	e, err := c.Enqueue(ctx, client.NewJob{Type: "fail", Payload: 1})
	if err != nil {
		return err
	}
	j, err := c.Wait(ctx, e.ID)
	if err != nil {
		return err
	}
	failed := (*client.FailedError)(nil)
	if !errors.As(j.Err(), &failed) || failed.State != client.StateDead || failed.LastError == nil || j.Attempts[0].Error == nil {
		return fmt.Errorf("the failed job is %+v: %w", j, j.Err())
	}
	if again, err := c.Retry(ctx, e.ID); err != nil || again.ID != e.ID || again.Run != 2 {
		return fmt.Errorf("retry: %+v: %w", again, err)
	}
	return nil
}

func batch(ctx context.Context, c *client.Client) error {
	key := fmt.Sprint("contract-", time.Now().UnixNano())
	r, err := c.EnqueueBatch(ctx, []client.NewJob{
		{Type: "echo", Payload: 1, IdempotencyKey: key}, {Type: "echo", Payload: 1, IdempotencyKey: key}, {Type: "a b", Payload: 1},
	})
	if err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	if r.Created != 1 || r.Duplicate != 1 || r.Rejected != 1 || r.Outcomes[2].Error == nil || r.Outcomes[2].Error.Field != "jobs[2].type" {
		return fmt.Errorf("batch: %+v", r)
	}
	return nil
}

func steering(ctx context.Context, c *client.Client) error {
	e, err := c.Enqueue(ctx, client.NewJob{Type: "echo", Payload: nil, Delay: time.Hour})
	if err != nil {
		return err
	}
	j, err := c.Job(ctx, e.ID)
	if err != nil || j.State != client.StateScheduled || j.NextRunAt == nil || len(j.WaitingOn) == 0 || j.WaitingOn[0].Until == nil {
		return fmt.Errorf("delayed: %+v: %w", j, err)
	}
	if j, err = c.Cancel(ctx, e.ID); err != nil || j.State != client.StateCancelled {
		return fmt.Errorf("cancelled: %+v: %w", j, err)
	}
	if err := c.Delete(ctx, e.ID); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if _, err := c.Job(ctx, e.ID); client.CodeOf(err) != client.CodeNotFound {
		return fmt.Errorf("deleted: %w", err)
	}
	return nil
}

func refusals(ctx context.Context, c *client.Client) error {
	_, err := c.Enqueue(ctx, client.NewJob{Type: "echo", Queue: "a b", Payload: 1})
	e := (*client.Error)(nil)
	if !errors.As(err, &e) || e.Code != client.CodeInvalid || e.Field != "queue" || e.Status != 400 || e.RequestID == "" {
		return fmt.Errorf("a bad queue: %w", err)
	}
	if _, err := c.Enqueue(ctx, client.NewJob{Type: "echo", Payload: make([]byte, 2<<20)}); client.CodeOf(err) != client.CodeTooLarge {
		return fmt.Errorf("a payload over the limit: %w", err)
	}
	return nil
}
