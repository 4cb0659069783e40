// Keeps what a forked process does from everybody else (check_child.h).
//
// Inputs: this process, just forked. Outputs: the same, with its own copies of the files that it may write, at their
// own offsets; with its writing to pipes and terminals going nowhere; and, where a handler is given, ended by it at a
// system call of check_system_calls.def, at one that would make or change a file, or that reads what somebody else is
// to have.
// Invariants: for a process of one thread that is to end soon. Tests: tests/check/test_isolation.py.
#pragma once

namespace dynvm::tracer::check {

// Called from a signal's handler, with the reason; does not return.
using Forbidden = void (*)(const char* why);

// Before the processes of a check are made: where files stand, and how long they are. A process that is to run from there, which is one with a handler,
// finds them so, whatever the others have read and written meanwhile.
void note_files();

void isolate(Forbidden forbidden);

}  // namespace dynvm::tracer::check
