#include "text/grammar/json_schema.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/text/grammar/match.h"

namespace weft::grammar {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

struct Case {
  const char* schema;
  std::vector<std::string> yes, no;
};

TEST(JsonSchema, MatchesWhatItSays) {
  const std::vector<Case> cases = {
      {R"({})",
       {"1", "-0.5e+10", "\"a\"", "[1, {\"a\": null}]", "{}", "true",
        "\"\\u00e9\\n\"", "[\n  1\n]"},
       {"", "01", "1.", ".5", "\"\n\"", "[1,]", "{\"a\"}", "nul", "'a'",
        "\"\\ud800\"", "\"\\x\"", "+1", "1 "}},
      {R"({"type": "string"})",
       {"\"\"", "\"é🦙\\\"\""},
       {"1", "\"", "\"\"\""}},
      {R"({"type": "integer"})", {"0", "-12"}, {"1.0", "00", "-", "1e2"}},
      {R"({"type": "boolean"})", {"true", "false"}, {"null", "True"}},
      {R"({"type": ["null", "integer"]})", {"null", "3"}, {"\"3\""}},
      {R"({"type": "string", "minLength": 2, "maxLength": 3})",
       {"\"ab\"", "\"é🦙\\n\"", "\"abc\""},
       {"\"a\"", "\"abcd\""}},
      {R"({"enum": ["a\"b", 1, null, {"x": [1]}]})",
       {"\"a\\\"b\"", "1", "null", "{\"x\":[1]}"},
       {"\"a\"", "2"}},
      {R"({"const": "é"})", {"\"é\""}, {"\"e\""}},
      // Properties in order; those that are not required may be left out.
      {R"({"type": "object", "properties": {"a": {"type": "integer"},
           "b": {"type": "string"}, "c": {"type": "null"}},
           "required": ["b"]})",
       {"{\"b\":\"\"}", "{\"a\": 1, \"b\": \"x\"}",
        "{ \"b\":\"x\",\n \"c\":null }", "{\"a\":1,\"b\":\"\",\"c\":null}"},
       {"{}", "{\"a\":1}", "{\"b\":1}", "{\"b\":\"\",}", "{,\"b\":\"\"}",
        "{\"b\":\"\",\"a\":1}", "{\"b\":\"\" \"c\":null}",
        "{\"b\":\"\",\"d\":1}"}},
      {R"({"properties": {"a": true, "b": true}})",
       {"{}", "{\"a\":[]}", "{\"b\":{}}", "{\"a\":1,\"b\":2}"},
       {"{\"c\":1}", "{\"a\":1,\"a\":1}"}},
      {R"({"type": "object", "additionalProperties": {"type": "integer"}})",
       {"{}", "{\"x\":1,\"y\":2}"},
       {"{\"x\":\"\"}"}},
      {R"({"type": "object", "properties": {"ab": {"type": "null"}},
           "additionalProperties": {"type": "integer"}})",
       {"{}", "{\"ab\":null}", "{\"ab\":null,\"a\":1,\"abc\":2,\"b\":3}",
        "{\"\":1}"},
       {"{\"ab\":1}", "{\"a\":null}", "{\"\\u0061b\":1}"}},
      {R"({"type": "object", "required": ["n"],
           "additionalProperties": {"type": "integer"}})",
       {"{\"n\":1}", "{\"n\":1,\"m\":2}"},
       {"{}", "{\"m\":1}"}},
      {R"({"type": "object", "properties": {},
           "additionalProperties": false})",
       {"{}", "{ }"},
       {"{\"a\":1}"}},
      {R"({"type": "array", "items": {"type": "integer"}})",
       {"[]", "[1]", "[1, 2,3]", "[ ]"},
       {"[\"a\"]", "[1", "[,1]"}},
      {R"({"type": "array", "items": {"type": "integer"}, "minItems": 2,
           "maxItems": 3})",
       {"[1,2]", "[1,2,3]"},
       {"[1]", "[]", "[1,2,3,4]"}},
      {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
      {R"({"type": "array", "maxItems": 1})", {"[]", "[1]"}, {"[1,1]"}},
      {R"({"type": "array", "prefixItems": [{"type": "string"},
           {"type": "integer"}], "items": {"type": "null"}, "minItems": 3})",
       {"[\"a\",1,null]", "[\"a\",1,null,null]"},
       {"[\"a\",1]", "[1,\"a\"]"}},
      {R"({"type": "array", "prefixItems": [{"type": "string"}]})",
       {"[\"a\"]"},
       {"[]", "[\"a\",1]"}},
      {R"({"anyOf": [{"type": "string"}, {"type": "array",
           "items": {"$ref": "#"}}]})",
       {"\"a\"", "[\"a\",[[\"b\"]]]"},
       {"1", "[1]"}},
      {R"({"oneOf": [{"const": 1}, {"const": 2}]})", {"1", "2"}, {"3"}},
      {R"({"allOf": [{"type": "null"}]})", {"null"}, {"1"}},
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object",
           "properties": {"v": {"type": "integer"}, "kids": {"type": "array",
           "items": {"$ref": "#/$defs/tree"}}}, "required": ["v"]}}})",
       {"{\"v\":1}", "{\"v\":1,\"kids\":[{\"v\":2,\"kids\":[]},{\"v\":3}]}"},
       {"{\"kids\":[]}", "{\"v\":1,\"kids\":[1]}"}},
      {R"({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"const": 7}}})",
       {"7"},
       {"8"}},
      {R"({"type": "string", "format": "date"})",
       {"\"2024-02-28\"", "\"1999-12-31\"", "\"2000-04-30\""},
       {"\"2024-04-31\"", "\"2024-02-30\"", "\"2024-13-01\"", "\"24-01-01\""}},
      {R"({"type": "string", "format": "date-time"})",
       {"\"2024-01-01T00:00:00Z\"", "\"2024-01-01T23:59:59.123+01:00\""},
       {"\"2024-01-01 00:00:00Z\"", "\"2024-01-01T24:00:00Z\""}},
      {R"({"type": "string", "format": "uuid"})",
       {"\"123e4567-e89b-12d3-a456-426614174000\""},
       {"\"123e4567\""}},
      {R"({"type": "string", "format": "ipv4"})",
       {"\"0.10.255.199\""},
       {"\"256.1.1.1\"", "\"1.1.1\"", "\"01.1.1.1\""}},
      {R"({"type": "string", "pattern": "^[A-Z]{2}-\\d+$"})",
       {"\"AB-1\"", "\"ZZ-0123\""},
       {"\"A-1\"", "\"AB-\"", "\"xAB-1\""}},
      {R"({"type": "string", "pattern": "b+"})",
       {"\"b\"", "\"abbc\"", "\"\\nb\""},
       {"\"\"", "\"ac\""}},
      {R"x({"type": "string", "pattern": "^(?:a|b\\\\|\"|\\n|[^x-z\"]\\.)?$"})x",
       {"\"\"", "\"a\"", "\"b\\\\\"", "\"\\\"\"", "\"\\n\"", "\"q.\"",
        "\"\\\\.\""},
       {"\"b\\\"", "\"x.\"", "\"b\"", "\"\"\""}},
      {R"({"type": "number", "minimum": 0})", {"0.5", "1e3"}, {"-1"}},
  };
  for (const Case& c : cases) {
    Matcher matches(FromJsonSchema(Json::parse(c.schema)));
    for (const std::string& text : c.yes) {
      EXPECT_TRUE(matches(text)) << c.schema << "\n" << text;
      EXPECT_TRUE(Json::accept(text)) << text;
    }
    for (const std::string& text : c.no) {
      EXPECT_FALSE(matches(text)) << c.schema << "\n" << text;
    }
  }
}

TEST(JsonSchema, IntegersKeepTheirBounds) {
  const std::pair<int64_t, int64_t> cases[] = {
      {0, 0},     {0, 9},      {3, 7},        {5, 23},   {-3, 4},
      {-20, -11}, {-1, -1},    {0, 999},      {99, 101}, {10, 1000},
      {-105, 98}, {100, 1200}, {-1200, -999}, {7, 7000}};
  for (const auto& [low, high] : cases) {
    Matcher matches(FromJsonSchema(
        {{"type", "integer"}, {"minimum", low}, {"maximum", high}}));
    Matcher between(FromJsonSchema({{"type", "integer"},
                                    {"exclusiveMinimum", low - 1},
                                    {"exclusiveMaximum", high + 1}}));
    for (int64_t i = -8000; i <= 8000; ++i) {
      const std::string text = std::to_string(i);
      const bool want = i >= low && i <= high;
      ASSERT_EQ(matches(text), want) << low << " " << i << " " << high;
      ASSERT_EQ(between(text), want) << low << " " << i << " " << high;
    }
    EXPECT_FALSE(matches("-0"));
    EXPECT_FALSE(matches("007"));
  }
  Matcher open(FromJsonSchema({{"type", "integer"}, {"minimum", 12}}));
  EXPECT_TRUE(open("12") && open("123456789012345678"));
  EXPECT_FALSE(open("11") || open("-12"));
  Matcher half(FromJsonSchema({{"type", "integer"}, {"maximum", 1.5}}));
  EXPECT_TRUE(half("1") && half("-7"));
  EXPECT_FALSE(half("2"));
}

TEST(JsonSchema, RefusesWithTheReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "#: a schema is an object"},
      {"false", "allows nothing"},
      {R"({"type": "object", "patternProperties": {}})", "'patternProperties'"},
      {R"({"properties": {"a": {"not": {}}}})",
       "#/properties/a: keyword 'not' is not supported"},
      {R"({"type": "number", "multipleOf": 2})", "'multipleOf'"},
      {R"({"type": "number", "maximum": 2})", "'maximum'"},
      {R"({"type": "thing"})", "type \"thing\" is not known"},
      {R"({"type": 5})", "type 5 is not known"},
      {R"({"type": "string", "format": "email"})", "format 'email'"},
      {R"({"$ref": "#/nowhere"})", "#/nowhere: is referred to"},
      {R"({"$ref": "http://x"})", "outside of the schema"},
      {R"({"$ref": "#"})", "can never end"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
           "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}})",
       "can never end"},
      {R"({"type": "array", "minItems": 2, "maxItems": 1})", "above"},
      {R"({"type": "array", "minItems": -1})", "minItems"},
      {R"({"type": "array", "maxItems": 100000000})", "maxItems"},
      {R"({"type": "integer", "minimum": 2, "maximum": 1})", "bounds"},
      {R"({"enum": []})", "enum"},
      {R"({"anyOf": {}})", "anyOf"},
      {R"({"allOf": [{}, {}]})", "allOf"},
      {R"({"anyOf": [{}], "properties": {}})", "'properties' beside anyOf"},
      {R"({"type": "object", "properties": {"a": {}}, "required": ["b"]})",
       "'b' is required and not allowed"},
      {R"x({"pattern": "(?=a)"})x", "kind of group"},
      {R"x({"pattern": "a\\b"})x", "escape"},
      {R"x({"pattern": "^a|b$"})x", "parentheses"},
      {R"x({"pattern": "(a"})x", "')' is wanted"},
      {R"x({"pattern": "[b-a]"})x", "backwards"},
      {R"x({"pattern": "a**"})x", "repetition of a repetition"},
      {R"x({"pattern": "a", "minLength": 1})x", "beside another"},
      {R"x({"pattern": "((a{1,10000}){1,10000}){1,10000}"})x", "too large"},
  };
  for (const auto& [schema, why] : cases) {
    EXPECT_THAT(Refusal(FromJsonSchema(Json::parse(schema))), HasSubstr(why))
        << schema;
  }
  Json deep = {{"type", "null"}};
  for (int i = 0; i < 500; ++i) deep = {{"items", deep}};
  EXPECT_THAT(Refusal(FromJsonSchema(deep)), HasSubstr("nested too deeply"));
  // Not a stack as deep as a name is long.
  const Json long_name = {
      {"type", "object"},
      {"properties", {{std::string(300000, 'a'), {{"type", "null"}}}}},
      {"additionalProperties", true}};
  EXPECT_THAT(Refusal(FromJsonSchema(long_name)),
              HasSubstr("a name of more than"));
}

TEST(JsonSchema, JsonModeIsAnyObject) {
  Matcher matches(AnyJsonObject());
  EXPECT_TRUE(matches("{\"a\": [1, {\"b\": \"c\"}], \"d\": {}}"));
  EXPECT_FALSE(matches("[1]"));
  EXPECT_FALSE(matches("{\"a\": }"));
}

}  // namespace
}  // namespace weft::grammar
