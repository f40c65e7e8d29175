// How results reach standard output.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

// Once, at the start of main: std::cout keeps the reason of a failure.
void InstallOutput();

// One line. Bytes that are no UTF-8 (names from files, half characters) become
// U+FFFD: the line is always valid JSON. Keys in the order given.
void PrintJson(const nlohmann::ordered_json& json);

// Text from a file as a terminal may show it: control characters become "?".
std::string Plain(absl::string_view text);

// To `path` (whole or not at all), or to standard output when it is empty.
absl::Status WriteResult(const std::string& path, absl::string_view content);

// Flushes standard output. An error if something could not be written: a result
// that is not whole must not look like success. A pipe whose reader has gone is
// none: it had what it wanted (`weft run | head`).
absl::Status FinishOutput();

}  // namespace weft
