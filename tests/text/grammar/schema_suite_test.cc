// The public JSON-Schema-Test-Suite: schemas with instances that are valid and
// such that are not. Skipped unless WEFT_SCHEMA_SUITE_DIR names its folder of
// one draft, as <suite>/tests/draft2020-12.
//
// What a grammar allows is valid, whatever it drops by name; and with
// SchemaOptions::open what is valid is allowed, but for what json_schema.h
// says. The table that is printed has for each keyword: instances; right with
// `open`, right without; valid ones that are not allowed; schemas that are not
// kept whole; invalid ones that are allowed though nothing was dropped (none).
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/text/grammar/match.h"
#include "text/grammar/json_schema.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

// Of these files: format alone is a note in the drafts, an assertion here; the
// rest is about other documents.
bool IsLeftOut(const std::string& name) {
  static const auto* const kNames = new std::set<std::string>{
      "format", "refRemote", "vocabulary", "format-assertion", "cross-draft"};
  return kNames->count(name) > 0;
}

struct Count {
  int instances = 0, right = 0, right_closed = 0, not_allowed = 0, dropped = 0,
      wrong = 0;
};

void Try(const Json& group, const std::string& where, Count* count) {
  for (const bool open : {true, false}) {
    SchemaOptions options;
    options.open = open;
    options.strict = false;
    const auto syntax = FromJsonSchema(group["schema"], options);
    const bool impossible =
        !syntax.ok() &&
        (syntax.status().message().find("allows nothing") !=
             std::string::npos ||
         syntax.status().message().find("no number") != std::string::npos);
    const bool usable = syntax.ok() && Compiled::Create(*syntax).ok();
    if (open && (!syntax.ok() || !syntax->dropped.empty()) && !impossible) {
      ++count->dropped;
      if (std::getenv("WEFT_SCHEMA_SUITE_VERBOSE") != nullptr) {
        std::printf("not kept: %s: %s\n", where.c_str(),
                    syntax.ok() ? syntax->dropped[0].c_str()
                                : syntax.status().ToString().c_str());
      }
    }
    std::unique_ptr<Matcher> matches;
    if (usable) matches = std::make_unique<Matcher>(syntax);
    for (const Json& test : group["tests"]) {
      const std::string text = test["data"].dump();
      const bool valid = test["valid"];
      const bool allowed = usable && (*matches)(text);
      if (allowed == valid) ++(open ? count->right : count->right_closed);
      if (open) ++count->instances;
      if (open && valid && !allowed) {
        ++count->not_allowed;
        if (std::getenv("WEFT_SCHEMA_SUITE_VERBOSE") != nullptr) {
          std::printf("not allowed: %s: %s: %s\n", where.c_str(),
                      group["schema"].dump().substr(0, 200).c_str(),
                      text.substr(0, 100).c_str());
        }
      }
      if (allowed && !valid && syntax->dropped.empty()) {
        ++count->wrong;
        ADD_FAILURE() << where << (open ? " (open): " : ": ")
                      << group["schema"].dump() << " lets pass " << text;
      }
    }
  }
}

TEST(SchemaSuite, WhatAGrammarAllowsIsValid) {
  const char* folder = std::getenv("WEFT_SCHEMA_SUITE_DIR");
  if (folder == nullptr) {
    GTEST_SKIP() << "set WEFT_SCHEMA_SUITE_DIR to the tests of one draft of "
                    "the JSON-Schema-Test-Suite";
  }
  std::map<std::string, Count> counts;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = entry.path().stem().string();
    if (IsLeftOut(name)) continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const Json groups = Json::parse(text.str(), nullptr, false);
    ASSERT_TRUE(groups.is_array()) << entry.path();
    const std::string where =
        std::filesystem::relative(entry.path(), folder).string();
    for (const Json& group : groups) {
      Try(group, where + ": " + group["description"].get<std::string>(),
          &counts[where]);
    }
  }
  EXPECT_FALSE(counts.empty()) << folder << " has no tests";
  Count all;
  std::printf("%-45s %6s %6s %6s %6s %6s %6s\n", "keyword", "tests", "open",
              "closed", "narrow", "named", "wrong");
  for (const auto& [name, c] : counts) {
    std::printf("%-45s %6d %6d %6d %6d %6d %6d\n", name.c_str(), c.instances,
                c.right, c.right_closed, c.not_allowed, c.dropped, c.wrong);
    all.instances += c.instances;
    all.right += c.right;
    all.right_closed += c.right_closed;
    all.not_allowed += c.not_allowed;
    all.dropped += c.dropped;
    all.wrong += c.wrong;
  }
  std::printf("%-45s %6d %6d %6d %6d %6d %6d\n", "all", all.instances,
              all.right, all.right_closed, all.not_allowed, all.dropped,
              all.wrong);
}

}  // namespace
}  // namespace weft::grammar
