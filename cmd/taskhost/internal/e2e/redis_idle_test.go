package e2e

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"
)

// sent counts the commands that clients (and not scripts) of a Redis send in a while.
func sent(t *testing.T, addr string, while time.Duration) map[string]int {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "MONITOR\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(while)); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^\+[0-9.]+ \[[0-9]+ ([^\]]+)\] "([^"]+)"`)
	n := map[string]int{}
	for s := bufio.NewScanner(c); s.Scan(); {
		if m := line.FindStringSubmatch(s.Text()); m != nil && m[1] != "lua" {
			n[m[2]]++
		}
	}
	return n
}

// Hosts without work leave their Redis alone: at most 0.2 commands a second and host, measured over five minutes
// (TASKHOST_TEST_LONG=1). Here it is a bound that half a minute can hold, in which each of the rare looks may fall.
func TestIdleHostsOnRedis(t *testing.T) {
	t.Parallel()
	while, most := 25*time.Second, 0.5
	if os.Getenv("TASKHOST_TEST_LONG") != "" {
		while, most = 5*time.Minute, 0.2
	}
	const hosts = 2
	redis := redisServer(t)
	for range hosts {
		dir := t.TempDir()
		s := serve(t, dir, samplesConfig(t, dir)+fmt.Sprintf("store: %q\nwasm: {runners: 1}\n", redis.URL("idle:")))
		s.wait(s.enqueue(1, `{"type":"sleep","payload":{"ms":1}}`)[0]) // it works
	}
	// What follows a job (hints that are looked after, one more look of a worker) is over.
	<-time.After(3 * time.Second)
	n := sent(t, redis.Addr(), while)
	all := 0
	for _, k := range n {
		all += k
	}
	rate := float64(all) / while.Seconds() / hosts
	t.Logf("%.2f commands/s of a host in %s: %v", rate, while, n)
	if rate > most {
		t.Errorf("an idle host sends %.2f commands/s, want at most %.1f: %v", rate, most, slices.Sorted(maps.Keys(n)))
	}
}
