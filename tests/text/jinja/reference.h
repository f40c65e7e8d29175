// Compares results with Jinja's own: always with those that are stored, and
// with live ones where python3-jinja2 is installed.
#pragma once

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace weft {

using Json = nlohmann::ordered_json;

inline std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.good()) << path;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

// What tests/text/chat_templates/reference.py prints; nullopt without Jinja.
inline std::optional<Json> RunReference(const std::string& arguments) {
  const std::string command =
      "python3 tests/text/chat_templates/reference.py " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.append(buffer, n);
  }
  if (pclose(pipe) != 0) return std::nullopt;
  return Json::parse(output);
}

// `got` against {"text": ...} or {"error": ...}. Errors have words of their
// own, except where the template gives them.
inline void ExpectSame(const std::string& name, const Json& want,
                       const absl::StatusOr<std::string>& got,
                       const std::string& source) {
  if (want.contains("text")) {
    const std::string text = want["text"];
    ASSERT_TRUE(got.ok()) << name << "\n" << got.status();
    EXPECT_EQ(*got, text) << name;
    return;
  }
  const std::string error = want["error"];
  ASSERT_FALSE(got.ok()) << name << "\nwants the error: " << error
                         << "\nhas: " << *got;
  const std::string message(got.status().message());
  EXPECT_TRUE(absl::StrContains(message, "line ")) << name << "\n" << message;
  if (absl::StrContains(source, "\"" + error + "\"")) {
    EXPECT_TRUE(absl::EndsWith(message, error)) << name << "\n" << message;
  }
}

}  // namespace weft
