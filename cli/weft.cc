// The binary.
#include "cli/main.h"

int main(int argc, char** argv) { return weft::Main(argc, argv); }
