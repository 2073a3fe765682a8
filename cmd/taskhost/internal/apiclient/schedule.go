package apiclient

import (
	"strings"
	"time"
)

// Schedule is what the commands read of a schedule.
type Schedule struct {
	Name      string      `json:"name"`
	Origin    string      `json:"origin"`
	Cron      string      `json:"cron"`
	TZ        string      `json:"tz"`
	Paused    bool        `json:"paused"`
	Type      string      `json:"type"`
	Queue     string      `json:"queue"`
	Next      []time.Time `json:"next"`
	LastDue   *time.Time  `json:"last_due"`
	LastError string      `json:"last_error"`
	Warnings  []string    `json:"warnings"`
}

// Zone is the zone as a spec takes it: an interval has none, though the server shows UTC for it.
func (s *Schedule) Zone() string {
	if strings.HasPrefix(s.Cron, "@every") && s.TZ == "UTC" {
		return ""
	}
	return s.TZ
}
