// What strangers may do to an interpreter: everything ends soon, in an error
// or in a text, and never on the floor of the stack.
#include "text/jinja/limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/test_vocabulary.h"
#include "text/jinja/template.h"

namespace weft::jinja {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

absl::Status RunTemplate(const std::string& source, const Json& x = nullptr) {
  const auto parsed = Template::Parse(source);
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render({{"x", x, true, {}}}, absl::UnixEpoch()).status();
}

TEST(JinjaLimits, NestedSourceIsRefused) {
  const struct {
    const char *open, *middle, *close;
  } cases[] = {
      {"(", "1", ")"},     {"[", "1", "]"},     {"{1:", "1", "}"},
      {"not ", "1", ""},   {"-", "1", ""},      {"1 if 1 else ", "1", ""},
      {"f(", "1", ")"},    {"1 + ", "1", ""},   {"1 ** ", "1", ""},
      {"1 and ", "1", ""}, {"", "1", " | abs"}, {"", "x", ".a"},
      {"", "x", "[0]"},    {"", "x", "()"},     {"", "x", " is odd"},
      {"a[", "1", "]"},
  };
  for (const auto& c : cases) {
    const std::string source = "{{ " + Repeat(c.open, 20000) + c.middle +
                               Repeat(c.close, 20000) + " }}";
    EXPECT_FALSE(RunTemplate(source).ok()) << c.open << c.close;
  }
  for (const char* open :
       {"{% if 1 %}", "{% for a in [1] %}", "{% macro m() %}", "{% set a %}",
        "{% with a = 1 %}", "{% filter trim %}", "{% generation %}",
        "{% call m() %}"}) {
    EXPECT_FALSE(RunTemplate(Repeat(open, 10000)).ok()) << open;
  }
  EXPECT_FALSE(RunTemplate("{% for " + Repeat("(", 100000) + "a").ok());
  EXPECT_FALSE(RunTemplate(std::string(kMaxSource + 1, 'x')).ok());
  // What nests as deep as people write does work.
  EXPECT_TRUE(
      RunTemplate("{{ " + Repeat("(", 50) + "1" + Repeat(")", 50) + " }}")
          .ok());
  EXPECT_TRUE(
      RunTemplate(Repeat("{% if 1 %}", 50) + Repeat("{% endif %}", 50)).ok());
  EXPECT_TRUE(RunTemplate("{{ 'a' " + Repeat("~ 'b' ", 10000) + "}}").ok());
  EXPECT_TRUE(
      RunTemplate("{% if 0 %}" + Repeat("{% elif 0 %}", 10000) + "{% endif %}")
          .ok());
}

TEST(JinjaLimits, EachMessageMayLookAtAllOthers) {
  for (const int messages : {10, 730, 1500}) {
    Json x = Json::array();
    for (int i = 0; i < messages; ++i) x.push_back("hi");
    EXPECT_TRUE(
        RunTemplate("{% for m in x %}{% for n in x %}{% endfor %}{% endfor %}",
                    x)
            .ok());
  }
}

TEST(JinjaFilters, WhatIsFalseHoldsNothingToChooseFrom) {
  for (const char* filter :
       {"select", "reject", "selectattr('a')", "rejectattr('a')",
        "map('upper')", "map(attribute='a')", "map"}) {
    const std::string list = absl::StrCat("x | ", filter, " | list | length");
    for (const Json& x : {Json(), Json(0), Json(false), Json("")}) {
      EXPECT_TRUE(
          RunTemplate(
              absl::StrCat("{% if ", list, " %}{{ 1 // 0 }}{% endif %}"), x)
              .ok())
          << filter << x;
    }
    EXPECT_FALSE(RunTemplate(absl::StrCat("{{ ", list, " }}"), 1).ok());
  }
}

TEST(JinjaLimits, EndlessWorkIsRefused) {
  for (const char* source : {
           // Ever longer strings and lists.
           "{% set ns = namespace(s='ab') %}{% for i in range(100) %}"
           "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{% set ns = namespace(s='ab') %}{% for i in range(100) %}"
           "{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}"
           "{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(s='ab') %}{% for i in range(100) %}"
           "{% set ns.s = ns.s | replace('', ns.s) %}{% endfor %}",
           "{% set ns = namespace(s='ab') %}{% for i in range(100) %}"
           "{% set ns.s = ns.s.join(ns.s) %}{% endfor %}",
           "{{ 'a' * 9223372036854775807 }}",
           "{{ [1] * 9223372036854775807 }}",
           "{{ 'a'.center(9223372036854775807) }}",
           "{{ 'a'.ljust(9223372036854775807) }}",
           "{{ 'a' | indent(9223372036854775807) }}",
           "{{ [1] | tojson(indent=9223372036854775807) }}",
           "{{ [1] | batch(100000, 2) | list | tojson(indent=10000) }}",
           // Values that are small and print long: a list of a list of ...
           "{% set ns = namespace(s=[1, 2]) %}{% for i in range(90) %}"
           "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
           "{% set ns = namespace(s=[1, 2]) %}{% for i in range(90) %}"
           "{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}",
           "{% set a = namespace(s=[1]) %}{% set b = namespace(s=[1]) %}"
           "{% for i in range(90) %}{% set a.s = [a.s, a.s] %}"
           "{% set b.s = [b.s, b.s] %}{% endfor %}{{ a.s == b.s }}",
           // Loops in loops.
           "{% for a in range(100000) %}{% for b in range(100000) %}"
           "{% endfor %}{% endfor %}",
           "{% for a in range(100000) if range(100000) | list %}{% endfor %}",
           "{{ range(100000) | map('string') | map('list') | map('join') "
           "| unique | list | length }}",
           "{% for a in range(100000) %}{{ range(100000) | sum }}{% endfor %}",
           // Too deep.
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m() %}{{ caller() }}{% endmacro %}"
           "{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}"
           "{{ n() }}",
           "{% set ns = namespace(s=1) %}{% for i in range(100000) %}"
           "{% set ns.s = [ns.s] %}{% endfor %}",
           "{% set ns = namespace(s=1) %}{% for i in range(100000) %}"
           "{% set ns.s = {1: ns.s} %}{% endfor %}",
           "{% set ns = namespace(s='') %}{% for i in range(100000) %}"
           "{% set ns.s = [ns.s].index %}{% endfor %}",
       }) {
    const absl::Status status = RunTemplate(source);
    EXPECT_FALSE(status.ok()) << source;
  }
}

TEST(JinjaLimits, ScopesThatMacrosKeepAreBounded) {
  // Each call leaves a macro whose scope lies in the one before.
  const absl::Status status = RunTemplate(
      "{% set ns = namespace() %}"
      "{% macro first() %}{% macro inner() %}{% macro deeper() %}"
      "{{ ns.f() }}{% endmacro %}{% set ns.f = deeper %}{% endmacro %}"
      "{% set ns.f = inner %}{% endmacro %}{{ first() }}"
      "{% for i in range(100000) %}{{ ns.f() }}{% endfor %}");
  EXPECT_FALSE(status.ok());
}

TEST(JinjaLimits, DeepInputIsRefused) {
  const auto nested = [](int depth) {
    return Json::parse(Repeat("[", depth) + Repeat("]", depth));
  };
  EXPECT_TRUE(RunTemplate("{{ x }}", nested(90)).ok());
  EXPECT_THAT(std::string(RunTemplate("{{ x }}", nested(2000)).message()),
              HasSubstr("nested more than 100 deep"));
}

TEST(JinjaLimits, LongInputIsNoObstacle) {
  // 2 MB of text through the usual steps, and a run that a naive search takes
  // quadratic time for.
  const std::string text(2 << 20, 'a');
  EXPECT_TRUE(
      RunTemplate("{{ x | trim }}{{ x.split('</think>')[-1].lstrip('n') }}"
                  "{{ 'ab' in x }}{{ x | replace('aab', 'c') | tojson }}",
                  text)
          .ok());
  EXPECT_TRUE(RunTemplate("{{ ('a' * 100000 ~ 'b') in x }}"
                          "{{ x.split('a' * 100000 ~ 'b') | length }}",
                          text)
                  .ok());
  Json messages = Json::array();
  for (int i = 0; i < 20000; ++i) {
    messages.push_back({{"role", "user"}, {"content", "hello"}});
  }
  EXPECT_TRUE(
      RunTemplate("{% for m in x %}{{ '<' ~ m.role ~ '>' ~ m.content | trim }}"
                  "{% if loop.last %}end{% endif %}{% endfor %}",
                  messages)
          .ok());
}

TEST(JinjaLimits, NumbersStayInTheirRange) {
  for (const char* source :
       {"{{ 170141183460469231731687303715884105727 + 1 }}",
        "{{ 170141183460469231731687303715884105727 * 2 }}",
        "{{ -170141183460469231731687303715884105727 - 2 }}", "{{ 10 ** 39 }}",
        "{{ 170141183460469231731687303715884105728 }}",
        "{{ 2 ** 9223372036854775807 }}",
        "{{ (-170141183460469231731687303715884105727 - 1) // -1 }}",
        "{{ -(-170141183460469231731687303715884105727 - 1) }}",
        "{{ (-170141183460469231731687303715884105727 - 1) | abs }}",
        "{{ '%99999999999d' % 1 }}", "{{ 1.0 | round(-1) }}"}) {
    EXPECT_FALSE(RunTemplate(source).ok()) << source;
  }
  for (const char* source :
       {"{{ (-9223372036854775807 - 1) % -1 }}", "{{ 1 ** 99999999999 }}",
        "{{ 10.0 ** 400 | float }}", "{{ '9' * 1000 | int }}",
        "{{ 1e999 | int }}", "{{ '%d' % 9223372036854775807 }}",
        "{{ xs[9223372036854775807:] is defined }}",
        "{{ [1, 2][-9223372036854775807:9223372036854775807:"
        "9223372036854775807] }}",
        "{{ range(9223372036854775806, 9223372036854775807, 5) | list }}"}) {
    const absl::Status status = RunTemplate(source);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << source;
  }
}

}  // namespace
}  // namespace weft::jinja
