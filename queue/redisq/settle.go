package redisq

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/taskhost/taskhost/queue"
)

// settleBatch is the most settlements of one script call; more are sent in parts.
const settleBatch = 1000

// Settle implements queue.Queue. A call of more than 1000 settlements is sent in parts: should a later part fail, its outcomes are
// unknown and those before are as they are.
func (s *Store) Settle(ctx context.Context, settlements []queue.Settlement) ([]queue.SettleOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]queue.SettleOutcome, len(settlements))
	sent := false
	var part []int
	send := func() error {
		if len(part) == 0 {
			return nil
		}
		err := s.settle(ctx, settlements, part, outcomes)
		if err != nil && !sent {
			return err
		}
		for _, i := range part {
			if err != nil {
				outcomes[i] = queue.SettleOutcome{Status: queue.SettleUnknown, Err: err}
			}
		}
		sent, part = true, part[:0]
		return nil
	}
	for i := range settlements {
		st := &settlements[i]
		if err := st.Validate(s.limits); err != nil {
			outcomes[i] = queue.SettleOutcome{Status: queue.SettleRejected, Err: err}
			continue
		}
		if _, ok := short(st.ID); !ok {
			outcomes[i] = queue.SettleOutcome{Status: queue.SettleLeaseLost}
			continue
		}
		if part = append(part, i); len(part) == settleBatch {
			if err := send(); err != nil {
				return nil, err
			}
		}
	}
	if err := send(); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// settle sends the settlements with the given places.
func (s *Store) settle(ctx context.Context, all []queue.Settlement, places []int, outcomes []queue.SettleOutcome) error {
	l := s.lanes.take()
	defer s.lanes.give(l)
	args := make([]any, 0, 6+len(places))
	args = append(args, l.name, l.number)
	for _, run := range runs(all, places) {
		letters := make([]byte, len(run))
		infos := binary.BigEndian.AppendUint16([]byte{0xdc}, uint16(len(run)))
		for k, i := range run {
			letters[k] = letterOf(&all[i])
			infos = packString(infos, packInfo(&all[i]))
		}
		args = append(args, string(all[run[0]].Token), len(run), letters, infos)
		for _, i := range run {
			id, _ := short(all[i].ID)
			args = append(args, id)
		}
	}
	v, err := s.run(ctx, "settle", args...)
	if err != nil {
		return err
	}
	letters := asString(v)
	if len(letters) != len(places) {
		return fmt.Errorf("%w: redis answered %d of %d settlements", queue.ErrUnavailable, len(letters), len(places))
	}
	n := 0
	for _, run := range runs(all, places) {
		for _, i := range run {
			outcomes[i] = queue.SettleOutcome{Status: queue.SettleOK, State: stateOfLetter[letters[n:n+1]]}
			if letters[n] == 'L' {
				outcomes[i] = queue.SettleOutcome{Status: queue.SettleLeaseLost}
			}
			n++
		}
	}
	return nil
}

// runs gathers settlements of one token, none of them twice. Acknowledged jobs enter no line, so that where there is nothing else their order is free;
// otherwise only neighbours are gathered.
func runs(all []queue.Settlement, places []int) [][]int {
	free := true
	for _, i := range places {
		free = free && all[i].Verb == queue.VerbAck
	}
	var list [][]int
	at := make(map[queue.Token]int)
	seen := make(map[queue.Ref]int, len(places)) // the run each was last put in, counted from 1
	for _, i := range places {
		ref := all[i].Ref
		k, ok := at[ref.Token]
		if !ok || !free && k != len(list)-1 || seen[ref] == k+1 {
			k = len(list)
			at[ref.Token] = k
			list = append(list, nil)
		}
		seen[ref] = k + 1
		list[k] = append(list[k], i)
	}
	return list
}

// letterOf is a verb as lua/settle.lua knows it.
func letterOf(st *queue.Settlement) byte {
	switch st.Verb {
	case queue.VerbAck:
		if len(st.Result) > 0 {
			return 'A'
		}
		return 'a'
	case queue.VerbDefer:
		return 'f'
	case queue.VerbNack, queue.VerbDead, queue.VerbYield, queue.VerbRelease, queue.VerbCrash:
	}
	return st.Verb[0]
}

// packInfo is what settle in lua/lib/batch.lua needs to know of a settlement.
func packInfo(st *queue.Settlement) []byte {
	p := newPacker(nil)
	p.int("d", st.Duration.Milliseconds())
	p.int("f", st.Fuel)
	p.int("p", st.PeakMemoryBytes)
	p.str("hr", st.Handler.Runtime)
	p.int("hv", int64(st.Handler.Version))
	if e := st.Error; e != nil {
		p.str("ek", e.Kind)
		if e.Kind == "" {
			p.b, p.n = packString(packString(p.b, "ek"), ""), p.n+1 // there is an error
		}
		p.str("em", e.Message)
		if e.Retryable {
			p.int("ey", 1)
		}
	}
	switch st.Verb {
	case queue.VerbAck:
		p.bytes("rs", st.Result)
	case queue.VerbNack, queue.VerbDefer:
		p.int("dl", ceilMillis(st.Delay))
	case queue.VerbDead, queue.VerbYield, queue.VerbRelease, queue.VerbCrash:
	}
	return p.end()
}

// Extend implements queue.Queue.
func (s *Store) Extend(ctx context.Context, refs []queue.Ref, lease time.Duration) ([]queue.ExtendOutcome, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := queue.ValidLease(lease); err != nil {
		return nil, err
	}
	outcomes := make([]queue.ExtendOutcome, len(refs))
	var tokens []queue.Token
	places := make(map[queue.Token][]int)
	for i, ref := range refs {
		outcomes[i].Status = queue.ExtendLost
		if _, ok := short(ref.ID); !ok {
			continue
		}
		if places[ref.Token] == nil {
			tokens = append(tokens, ref.Token)
		}
		places[ref.Token] = append(places[ref.Token], i)
	}
	for len(tokens) > 0 {
		args := []any{ceilMillis(lease)}
		var order []int
		for len(tokens) > 0 && len(order) < settleBatch {
			list := places[tokens[0]]
			list, rest := list[:min(len(list), settleBatch)], list[min(len(list), settleBatch):]
			args = append(args, string(tokens[0]), len(list))
			for _, i := range list {
				id, _ := short(refs[i].ID)
				args = append(args, id)
			}
			order = append(order, list...)
			if places[tokens[0]] = rest; len(rest) == 0 {
				tokens = tokens[1:]
			}
		}
		if err := s.extend(ctx, args, order, outcomes); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

func (s *Store) extend(ctx context.Context, args []any, order []int, outcomes []queue.ExtendOutcome) error {
	v, err := s.run(ctx, "extend", args...)
	if err != nil {
		return err
	}
	list, err := asList(v)
	if err != nil || len(list) != 2 || len(asString(list[1])) != len(order) {
		return fmt.Errorf("%w: redis answered an extension with %d values", queue.ErrUnavailable, len(list))
	}
	until := millis(asInt(list[0]))
	for k, i := range order {
		switch asString(list[1])[k] {
		case 'K':
			outcomes[i] = queue.ExtendOutcome{Status: queue.ExtendOK, Until: until}
		case 'C':
			outcomes[i] = queue.ExtendOutcome{Status: queue.ExtendCancelRequested, Until: until}
		}
	}
	return nil
}
