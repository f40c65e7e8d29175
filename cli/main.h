// The whole command line as a function: for a program of its own with all of
// weft's commands, and the ops, kernels and passes that it registers first
// (examples/my_weft.cc).
#pragma once

namespace weft {

// What weft's own main does: prints, and returns the exit code. Once in a
// process.
int Main(int argc, char** argv);

}  // namespace weft
