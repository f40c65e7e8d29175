// Ranks that are processes started by mpirun (MPI Forum, "MPI: A
// Message-Passing Interface Standard", version 3.1; Open MPI).
//
// The library is loaded when mpirun has started more than one process, and not
// otherwise.
#pragma once

#include "runtime/ranks/communicator.h"

namespace weft {

// What the environment says that mpirun sets; nothing is loaded.
int RanksStarted();  // 1: without mpirun, or alone
int RankStarted();

// All processes that were started together; the same one each time. Null where
// this one is alone. It is closed when the process ends. Errors: the library is
// not there, or does not start.
absl::StatusOr<std::shared_ptr<Communicator>> MpiCommunicator();

// Whether MpiCommunicator has started: if so, a process that cannot go on must
// Abort, or the others wait for it.
bool MpiIsStarted();

}  // namespace weft
