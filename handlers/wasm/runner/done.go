package runner

import (
	"github.com/taskhost/taskhost/abi/pluginpb"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/handlers/wasm/engine/attempt"
	"github.com/taskhost/taskhost/handlers/wasm/link"
)

// doneItem sends the result of a job in parts, then its end with the last one.
type doneItem struct {
	id    uint64
	parts link.Parts
	done  *pluginpb.Done
}

func newDone(j *job, out handlers.Outcome, logLines uint64) *doneItem {
	done := &pluginpb.Done{
		Outcome:         outcomes[out.Kind],
		OutputBytes:     uint32(len(out.Result)),
		RetryAfterMs:    -1,
		DurationNano:    uint64(out.Duration),
		PeakMemoryBytes: uint64(out.PeakMemory),
		Fuel:            uint64(out.Fuel),
		LogLines:        logLines,
	}
	if out.RetryAfter >= 0 {
		done.RetryAfterMs = out.RetryAfter.Milliseconds()
	}
	if out.Error != nil {
		done.ErrorKind, done.ErrorMessage = out.Error.Kind, attempt.Cut(out.Error.Message, pluginpb.MaxErrorMessage)
	}
	return &doneItem{id: j.id, parts: link.NewParts(out.Result), done: done}
}

// outcomes are the ends an attempt can have here. Crashes are told by the death of the process.
var outcomes = map[handlers.OutcomeKind]pluginpb.Outcome{
	handlers.OutcomeSucceeded:   pluginpb.Outcome_OUTCOME_SUCCEEDED,
	handlers.OutcomeRetry:       pluginpb.Outcome_OUTCOME_RETRY,
	handlers.OutcomePermanent:   pluginpb.Outcome_OUTCOME_PERMANENT,
	handlers.OutcomeDefer:       pluginpb.Outcome_OUTCOME_DEFER,
	handlers.OutcomeInterrupted: pluginpb.Outcome_OUTCOME_INTERRUPTED,
	handlers.OutcomeUnavailable: pluginpb.Outcome_OUTCOME_UNAVAILABLE,
}

func (d *doneItem) Next() (*pluginpb.HandlerFrame, bool, bool) {
	part, last := d.parts.Next()
	f := &pluginpb.HandlerFrame{Id: d.id}
	if last {
		d.done.Output = part
		f.Kind = &pluginpb.HandlerFrame_Done{Done: d.done}
	} else {
		f.Kind = &pluginpb.HandlerFrame_Output{Output: part}
	}
	return f, !last, true
}
