package client_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/taskhost/taskhost/sdk/go/client"
)

// greeter answers like a server whose jobs are done at once.
func greeter() *httptest.Server {
	mux := http.NewServeMux()
	reply := func(contentType string, status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	mux.HandleFunc("POST /v1/jobs", reply("application/json", 201, `{"outcome":"created","id":"job_01kb6x3v9se5h9r3t7d4m1n8qa"}`))
	mux.HandleFunc("GET /v1/jobs/{id}", reply("application/json", 200,
		`{"id":"job_01kb6x3v9se5h9r3t7d4m1n8qa","type":"hello","queue":"default","state":"succeeded","result":{"greeting":"Hello, Ada"},`+
			`"created_at":"2026-11-30T03:00:00.000Z","finished_at":"2026-11-30T03:00:00.009Z"}`))
	mux.HandleFunc("GET /v1/jobs/{id}/result", reply("application/json", 200, `{"greeting":"Hello, Ada"}`))
	mux.HandleFunc("POST /v1/jobs/{id}/cancel", reply("application/problem+json", 409,
		`{"type":"urn:taskhost:error:conflict","code":"conflict","status":409,"title":"Conflict with the current state",`+
			`"detail":"cannot cancel job_01kb6x3v9se5h9r3t7d4m1n8qa: it is succeeded","state":"succeeded","request_id":"req_1"}`))
	return httptest.NewServer(mux)
}

func Example() {
	server := greeter()
	defer server.Close()
	ctx := context.Background()

	c, err := client.New(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	job, err := c.Enqueue(ctx, client.NewJob{Type: "hello", Payload: map[string]string{"name": "Ada"}})
	if err != nil {
		log.Fatal(err)
	}
	done, err := c.Wait(ctx, job.ID)
	if err != nil {
		log.Fatal(err)
	}
	if err := done.Err(); err != nil {
		log.Fatal(err)
	}
	result, err := c.Result(ctx, job.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s\n", done.State, result)
	// Output: succeeded {"greeting":"Hello, Ada"}
}

func ExampleCodeOf() {
	server := greeter()
	defer server.Close()
	c, err := client.New(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	_, err = c.Cancel(context.Background(), "job_01kb6x3v9se5h9r3t7d4m1n8qa")
	if client.CodeOf(err) == client.CodeConflict {
		fmt.Println(err)
	}
	// Output: conflict: cannot cancel job_01kb6x3v9se5h9r3t7d4m1n8qa: it is succeeded (request req_1)
}
