// Package meter rewrites a WebAssembly module so that it counts what it executes. It knows nothing of an engine.
//
// A mutable global, the fuel, is lowered where code is entered or repeated. When it falls below zero the imported function tick
// is called. The host's tick is a safe point: it can yield, look at deadlines and limits, refill the fuel and return, or end the
// guest by a panic.
//
// # What is charged
//
// A unit of fuel is an instruction; block, loop, else, end and nop are free, calls through a table and growing memory or a table cost
// more (cost.go). A call pays for the code of the function, and a backward jump for the code that it jumps back over. Code that
// cannot be skipped is paid in full, code that can be skipped by a forward jump to a 16th, since most of it does not run: a
// branch in every arm would cost time. On programs that is about what they execute; it is at least a 16th, always: the
// stretches that a run goes through, forward from where it was entered or repeated, add up to no more than one pass through
// each called function and through each stretch that was jumped back over.
//
// Memory and table operations that take a length pay for it: a unit for every 16 bytes, and one for every table entry. Where a memory
// operation has a small constant length, this is a part of the cost of the instruction; others pay where they run. What is longer
// than 64 KiB is done in pieces, with a check before each (bulk.go). Tables are small where it matters: the host bounds them.
// A short function without loops and calls, a leaf, is paid by its callers.
//
// The fuel of a run depends on the module and its inputs only: not on the engine, the machine, or the size of refills.
//
// # Where it is checked
//
// Every backward jump and every cycle of calls passes a check. A chain of calls that is at its deepest has paid for the code that it
// runs on its way up; where such a chain can be endless, this code is paid for once more when it runs, by a 16th, so that the tick
// comes then, too (graph.go). Between two checks run at most some 130,000 instructions and one operation of 64 KiB or on a table. So
// between two ticks run at most 16 times the refill, and that, and no more than the code of the module once: a refill of a
// million units is a few milliseconds.
//
// A check stands at the jump rather than at the head of the loop. This is what makes it cheap: engines keep the variables of the
// loop in registers then, although the slow path calls the host.
//
// Go's compiler turns every jump inside a function into one to the head of a loop, where a br_table dispatches it. Where the target is
// known and lies ahead, which it does for nine of ten, the jump goes there directly: it needs no check, and takes less
// time than it did. Metered Go programs are as fast as the original for this reason.
//
// # What the rewritten module has besides
//
// The import TickModule.TickName, and the exports of names.go, all under reserved names, which are refused in the original. The
// start section becomes an export that the host calls when it is ready to enforce limits. Mutable globals are exported, so that
// a host can set them back. Custom sections but the function names are dropped; the lines of DWARF are written anew. All
// function indices shift by one.
//
// The input must be valid: an index out of range could become a valid one by the rewriting. So the order is: let the engine
// validate the original, Instrument, let the engine compile the result; instantiate, set ExportFuel, call ExportStart if HasStart.
// Instrument never panics, whatever the input, and its output is valid when its input is.
package meter
