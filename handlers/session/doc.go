// Package session is the host's side of one connection of the handler protocol (abi/pluginpb): it opens the streams, sends attempts in
// interleaved parts, and gathers what comes back.
//
//	Begin ──► Attempt ── parts ──► Work ───────────► handler side
//	             ▲                                       │
//	             ├── output, progress, end ◄── Work ◄────┤
//	             ├── checkpoints ◄──────────── Calls ◄───┤
//	             └── log lines ◄────────────── Logs ◄────┘
//
// What the far side says is checked: ids, lengths, states, order. A breach is reported as a *Violation, and whoever owns the process behind
// the connection ends it. The session knows nothing about processes.
package session
