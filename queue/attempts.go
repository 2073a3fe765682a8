package queue

import "fmt"

// AppendAttempt appends a record and drops the oldest ones beyond AttemptsKept. The caller owns list; the result may share
// its memory.
func AppendAttempt(list []Attempt, a Attempt) []Attempt {
	list = append(list, a)
	if over := len(list) - AttemptsKept; over > 0 {
		list = append([]Attempt(nil), list[over:]...)
	}
	return list
}

// AttemptBudget is how many attempts a run has: MaxAttempts, where 0 counts as 1.
func AttemptBudget(maxAttempts int) int { return max(maxAttempts, 1) }

// ErrorKindCrash is the JobError.Kind of a crash: the host or the runner died under the job.
const ErrorKindCrash = "crash"

// LeaseRanOut is the error of an attempt that the reaper ended, and of a crash that was settled without an error.
func LeaseRanOut() *JobError {
	return &JobError{Kind: ErrorKindCrash, Message: "the lease ran out: its host died or lost the store", Retryable: true}
}

// CrashBudgetSpent is the last error of a job that is dead because it crashed too often; last is the error of its last
// crash.
func CrashBudgetSpent(crashes int, last *JobError) *JobError {
	times := "times"
	if crashes == 1 {
		times = "time"
	}
	message := fmt.Sprintf("crashed worker %d %s", crashes, times)
	if last != nil && last.Message != "" {
		message += "; last: " + last.Message
	}
	return &JobError{Kind: ErrorKindCrash, Message: message}
}
