// How text reaches standard output and standard error.
//
// One gate: both streams are the program's own, and what a terminal would obey
// does not pass them, whatever it came from (text/printable.h): standard error
// never, standard output where it is a terminal. A pipe or a file gets all
// bytes.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

// Once, at the start of main. std::cout keeps the reason of a failure.
void InstallOutput();

// One line. Bytes that are no UTF-8 (names from files, half characters) become
// U+FFFD: the line is always valid JSON. Keys in the order given.
void PrintJson(const nlohmann::ordered_json& json);

// "weft: " and the line to standard error; one line, whatever it holds.
void PrintNotice(absl::string_view line);

// To `path` (whole or not at all), or to standard output when it is empty.
absl::Status WriteResult(const std::string& path, absl::string_view content);

// Flushes standard output. An error if something could not be written: a result
// that is not whole must not look like success. A pipe whose reader has gone is
// none: it had what it wanted (`weft run | head`).
absl::Status FinishOutput();

}  // namespace weft
