#include "text/grammar/json_schema.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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
      {R"({"type": "number", "minimum": -0.25, "maximum": 1})",
       {"0", "-0.25", "-0.2", "0.999", "1", "1.0"},
       {"-0.26", "1.01", "2", "-1", "1e0"}},
      {R"({"type": "number", "exclusiveMinimum": 0})",
       {"0.01", "3"},
       {"0", "0.0", "-1"}},
      {R"({"type": "number", "exclusiveMaximum": -1.5})",
       {"-1.51", "-2", "-10"},
       {"-1.5", "-1.50", "1", "-1"}},
      {R"({"type": "number", "multipleOf": 0.01})",
       {"19.99", "0", "-3.1", "2.500"},
       {"0.001", "19.999"}},
      {R"({"type": "integer", "multipleOf": 5, "minimum": 7, "maximum": 20})",
       {"10", "15", "20"},
       {"5", "11", "25", "-10"}},
      {R"({"type": "integer", "multipleOf": 400, "minimum": 1})",
       {"400", "1200"},
       {"0", "200", "100"}},
      {R"({"type": "integer", "exclusiveMinimum": true, "minimum": 3})",
       {"4"},
       {"3"}},
      {R"({"type": "string", "pattern": "^[a-z]+$", "minLength": 2,
           "maxLength": 4})",
       {"\"ab\"", "\"abcd\""},
       {"\"a\"", "\"abcde\"", "\"AB\""}},
      {R"({"type": "string", "format": "email", "maxLength": 10,
           "pattern": "@b\\.c"})",
       {"\"a@b.c\"", "\"a@b.com\""},
       {"\"aaaaaa@b.com\"", "\"a@x.c\"", "\"b.c\""}},
      {R"x({"type": "string", "pattern": "^(?=.*\\d)(?=.*[a-z])\\w{3,}$"})x",
       {"\"a1b\"", "\"1aa\""},
       {"\"abc\"", "\"123\"", "\"a1\""}},
      {R"x({"type": "string", "pattern": "^(?!no).*x$"})x",
       {"\"a x\"", "\"x\""},
       {"\"no x\"", "\"xa\""}},
      {R"x({"type": "string", "pattern": "a\\b.?\\bb"})x",
       {"\"xa b\"", "\"a,bc\""},
       {"\"ab\"", "\"a\"", "\"acb\""}},
      {R"({"type": "string", "pattern": "^a|b$"})",
       {"\"ax\"", "\"xb\""},
       {"\"xa\"", "\"bx\""}},
      {R"({"type": "string", "pattern": "^\\p{Lu}\\p{L}+$"})",
       {"\"Éa\"", "\"Ab\""},
       {"\"éa\"", "\"A1\""}},
      {R"({"type": "object", "propertyNames": {"pattern": "^[a-c]$"}})",
       {"{}", "{\"a\":1,\"c\":[]}"},
       {"{\"d\":1}", "{\"ab\":1}"}},
      {R"({"type": "object", "properties": {"a": {"type": "null"},
           "b": {"type": "null"}, "c": {"type": "null"}},
           "minProperties": 2})",
       {"{\"a\":null,\"c\":null}", "{\"a\":null,\"b\":null,\"c\":null}"},
       {"{}", "{\"b\":null}"}},
      {R"({"type": "object", "additionalProperties": {"type": "null"},
           "minProperties": 1, "maxProperties": 2})",
       {"{\"a\":null}", "{\"a\":null,\"b\":null}"},
       {"{}", "{\"a\":null,\"b\":null,\"c\":null}"}},
      {R"({"type": "object", "properties": {"id": {"type": "integer"}},
           "patternProperties": {"^x-": {"type": "string"},
           "y$": {"minLength": 2}}})",
       {"{\"id\":1,\"x-a\":\"\"}", "{\"x-y\":\"ab\"}", "{\"y\":\"ab\"}"},
       {"{\"x-a\":1}", "{\"x-y\":\"a\"}", "{\"z\":1}"}},
      {R"({"type": "array", "items": {"enum": ["a", "b", "c"]},
           "uniqueItems": true, "minItems": 2})",
       {"[\"c\",\"a\"]", "[\"b\",\"a\",\"c\"]"},
       {"[\"a\"]", "[\"a\",\"a\"]", "[\"a\",\"b\",\"a\"]"}},
      {R"({"type": "array", "items": {"type": "integer"},
           "contains": {"minimum": 10}, "maxContains": 2})",
       {"[10]", "[1,11,2]", "[10,11,3]"},
       {"[]", "[1]", "[10,11,12]", "[10,\"a\"]"}},
      {R"({"type": "string", "nullable": true})", {"null", "\"\""}, {"1"}},
      {R"({"type": "array", "items": [{"type": "string"}],
           "additionalItems": {"type": "integer"}})",
       {"[\"a\"]", "[\"a\",1,2]"},
       {"[1]", "[\"a\",\"b\"]"}},
      {R"({"type": "object", "properties": {"t": {"anyOf": [{"const": "L"},
           {"$ref": "#/properties/u%25/prefixItems/0"}]}, "u%": {"prefixItems":
           [{"const": 5}]}}})",
       {"{\"t\":\"L\"}", "{\"t\":5,\"u%\":[5]}"},
       {"{\"t\":6}"}},
      {R"({"$ref": "item", "$defs": {"x": {"$id": "item",
           "items": {"$ref": "#one"}, "type": "array",
           "$defs": {"y": {"$anchor": "one", "const": 1}}}}})",
       {"[1,1]"},
       {"[2]", "1"}},
      {R"({"type": "string", "not": {"enum": ["a", "b"]}})",
       {"\"c\"", "\"ab\"", "\"\""},
       {"\"a\"", "\"b\""}},
      {R"({"not": {"type": ["object", "string"]}})",
       {"1", "[]", "null"},
       {"{}", "\"\""}},
      {R"({"type": "integer", "not": {"multipleOf": 3}, "minimum": 1,
           "maximum": 12})",
       {"1", "11"},
       {"3", "12"}},
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}},
           "required": ["a"]}, {"properties": {"a": {"minimum": 3},
           "b": {"type": "null"}}}], "type": "object"})",
       {"{\"a\":3}", "{\"a\":4,\"b\":null}"},
       {"{\"a\":2}", "{}", "{\"b\":null}"}},
      {R"({"type": "object", "properties": {"k": {"enum": ["a", "b"]}},
           "required": ["k"], "oneOf": [
           {"properties": {"k": {"const": "a"}, "x": {"type": "null"}}},
           {"properties": {"k": {"const": "b"}, "y": {"type": "null"}}}]})",
       {"{\"k\":\"a\",\"x\":null}", "{\"k\":\"b\"}"},
       {"{\"k\":\"a\",\"y\":null}", "{\"k\":\"c\"}"}},
      // Exactly one.
      {R"({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]})",
       {"1", "2.5", "-3"},
       {"2", "3", "1.5"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer"},
           "b": {"type": "null"}}, "if": {"properties": {"a": {"minimum": 5}},
           "required": ["a"]}, "then": {"required": ["b"]}})",
       {"{\"a\":4}", "{\"a\":5,\"b\":null}", "{}"},
       {"{\"a\":5}"}},
      {R"({"type": "object", "properties": {"a": {}, "b": {}},
           "dependentRequired": {"a": ["b"]}})",
       {"{\"b\":1}", "{\"a\":1,\"b\":2}", "{}"},
       {"{\"a\":1}"}},
      {R"({"type": "object", "allOf": [{"properties": {"c": {"const": 1}}}],
           "unevaluatedProperties": false})",
       {"{\"c\":1}", "{}"},
       {"{\"c\":2}", "{\"d\":1}"}},
      {R"({"enum": [1, "ab", "b", null], "minLength": 2})",
       {"1", "\"ab\"", "null"},
       {"\"b\""}},
      // Notes.
      {R"({"type": "null", "x-order": 1, "discriminator": {}, "strict": true,
           "contentEncoding": "base64", "title": "t"})",
       {"null"},
       {"1"}},
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
      {R"({"minLenght": 2})", "keyword 'minLenght' is not supported"},
      {R"({"properties": {"a": {"not": {"propertyNames": {}}}}})",
       "#/properties/a/not: the contrary of this is not supported"},
      {R"({"type": "number", "multipleOf": 1.2345678})", "multipleOf"},
      {R"({"type": "number", "maximum": "2"})", "maximum is no number"},
      {R"({"type": "number", "minimum": 2, "exclusiveMaximum": 2})", "bounds"},
      {R"({"type": "array", "uniqueItems": true})", "uniqueItems"},
      {R"({"type": "object", "minProperties": 2})", "minProperties"},
      {R"({"type": "thing"})", "type \"thing\" is not known"},
      {R"({"type": 5})", "type 5 is not known"},
      {R"({"type": "string", "format": "postcode"})", "format 'postcode'"},
      {R"({"$ref": "#/nowhere"})", "#/nowhere: is referred to"},
      {R"({"$ref": "http://x"})", "outside of the schema"},
      {R"({"$ref": "#"})", "can never end"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
           "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}})",
       "can never end"},
      {R"({"type": "array", "minItems": 2, "maxItems": 1})", "above"},
      {R"({"type": "array", "minItems": -1})", "minItems"},
      {R"({"type": "array", "minItems": 100000000})", "minItems"},
      {R"({"type": "integer", "minimum": 2, "maximum": 1})", "bounds"},
      {R"({"enum": []})", "enum"},
      {R"({"anyOf": {}})", "anyOf"},
      {R"({"allOf": {}})", "allOf"},
      {R"({"allOf": [{"type": "null"}, {"type": "string"}]})",
       "allows nothing"},
      {R"({"type": "object", "properties": {"a": {}}, "required": ["b"],
           "additionalProperties": false})",
       "allows nothing"},
      {R"({"type": "object", "required": ["b"],
           "propertyNames": {"maxLength": 0}})",
       "'b' is required and not allowed"},
      {R"x({"pattern": "(?<=a)b"})x", "look-behind"},
      {R"x({"pattern": "(a)\\1"})x", "back references"},
      {R"x({"pattern": "\\q"})x", "escape"},
      {R"x({"pattern": "(?:a(?=b))*"})x", "look-ahead within a repetition"},
      {R"x({"pattern": "(a"})x", "')' is wanted"},
      {R"x({"pattern": "[b-a]"})x", "backwards"},
      {R"x({"pattern": "a**"})x", "repetition of a repetition"},
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
  EXPECT_THAT(Refusal(FromJsonSchema(long_name)), HasSubstr("too large"));
  // Bombs of choices are refused as fast.
  Json many = Json::object(), ways = Json::array();
  for (int i = 0; i < 1000; ++i) {
    many[absl::StrCat("property", i)] = {{"type", "null"}};
  }
  for (int i = 0; i < 400; ++i) {
    ways.push_back({{"required", {absl::StrCat("property", i)}}});
  }
  EXPECT_THAT(Refusal(FromJsonSchema({{"properties", many}, {"anyOf", ways}})),
              HasSubstr("too large"));
  Json choices = Json::array();
  for (int i = 0; i < 30; ++i) {
    const Json kinds = Json::array({{{"required", {absl::StrCat("a", i)}}},
                                    {{"required", {absl::StrCat("b", i)}}}});
    choices.push_back({{"anyOf", kinds}});
  }
  EXPECT_THAT(Refusal(FromJsonSchema({{"allOf", choices}})),
              HasSubstr("too many combinations"));
}

TEST(JsonSchema, FormatsAreKept) {
  struct FormatCase {
    const char* format;
    std::vector<std::string> yes, no;
  };
  const std::vector<FormatCase> cases = {
      {"date", {"2024-02-29", "2000-02-29"}, {"2023-02-29", "1900-02-29"}},
      {"time",
       {"00:00:00Z", "23:59:60Z", "12:00:00.5+02:00"},
       {"24:00:00Z", "12:00:00", "12:59:60Z", "00:00:00z"}},
      {"date-time",
       {"1985-04-12T23:20:50.52Z"},
       {"1985-04-12", "1985-04-12t23:20:50.52Z", "1985-04-12T23:20:50.52z"}},
      {"duration",
       {"P1D", "PT5M3S", "P2W", "P1Y2M3DT4H"},
       {"P", "PT", "P1H", "1D", "P1Y2D", "P1W2D"}},
      {"email",
       {"a.b+c@example.org", "x@y"},
       {"a", "@b", "a@", "a..b@c", ".a@b", "a@-b"}},
      {"hostname",
       {"a", "www.example.com", "xn.a-b.c"},
       {"", ".a", "a.", "-a", "a-", "a_b", "a..b", "ab--c"}},
      {"ipv4", {"1.2.3.4"}, {"1.2.3", "1.2.3.256", "1.2.3.04"}},
      {"ipv6",
       {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "::ffff:1.2.3.4",
        "1:2:3:4:5:6:7::", "1:2::7:8"},
       {"1:2:3:4:5:6:7", "1::2::3", ":::", "12345::", "1:2:3:4:5:6:7:8:9",
        "::ffff:1.2.3", "1:2:3:4:5:6:7:8::"}},
      {"uuid",
       {"123e4567-E89B-12d3-a456-426614174000"},
       {"123e4567e89b12d3a456426614174000"}},
      {"uri",
       {"https://a.b/c?d=e#f", "mailto:a@b", "urn:x:y", "http://[::1]:80/",
        "file:///a/b"},
       {"a", "//a", "http://", "http://a b", "http://%zz", "1a:b"}},
      {"uri-reference", {"", "a/b", "//a", "?x", "#y"}, {"a b", "\\"}},
      {"json-pointer", {"", "/a~1b/0"}, {"a", "/~2"}},
      {"byte", {"", "YWI=", "YWJj"}, {"YW", "=", "Y==="}}};
  for (const FormatCase& c : cases) {
    Matcher matches(FromJsonSchema({{"type", "string"}, {"format", c.format}}));
    for (const std::string& text : c.yes) {
      EXPECT_TRUE(matches(Json(text).dump())) << c.format << " " << text;
    }
    for (const std::string& text : c.no) {
      EXPECT_FALSE(matches(Json(text).dump())) << c.format << " " << text;
    }
  }
}

TEST(JsonSchema, TimesInSmallLettersAreValidButNotWritten) {
  SchemaOptions open;
  open.open = true;
  for (const char* text : {"1985-04-12t23:20:50.52z", "1985-04-12T23:20:50z"}) {
    const Json time = {{"type", "string"}, {"format", "date-time"}};
    EXPECT_FALSE(Matcher(FromJsonSchema(time))(Json(text).dump())) << text;
    EXPECT_TRUE(Matcher(FromJsonSchema(time, open))(Json(text).dump())) << text;
    // What is listed is meant; what is denied is all that is valid.
    Json listed = time, denied = {{"type", "string"}, {"not", time}};
    listed["enum"] = {text};
    EXPECT_TRUE(Matcher(FromJsonSchema(listed))(Json(text).dump())) << text;
    EXPECT_FALSE(Matcher(FromJsonSchema(denied))(Json(text).dump())) << text;
  }
}

TEST(JsonSchema, NoIntegerIsNoneAmongIntegers) {
  struct Numbers {
    const char* schema;
    std::vector<const char*> yes, no;
  };
  const std::vector<Numbers> cases = {
      {R"({"oneOf": [{"type": "integer", "minimum": 0, "maximum": 10},
                     {"type": "integer", "minimum": 5, "maximum": 20}]})",
       {"0", "4", "11", "20"},
       {"5", "8", "10", "21"}},
      {R"({"type": "integer", "minimum": 0, "maximum": 9,
           "not": {"type": "integer", "maximum": 5}})",
       {"6", "9"},
       {"0", "5", "10", "6.5"}},
      {R"({"type": "integer", "minimum": 0, "maximum": 9,
           "if": {"type": "integer", "maximum": 5},
           "then": {"multipleOf": 2}})",
       {"0", "4", "7", "9"},
       {"1", "3", "5"}},
      {R"({"type": ["integer", "null"], "not": {"type": "integer"}})",
       {"null"},
       {"1"}},
      {R"({"type": "object", "properties": {"x": {"type": "integer",
           "minimum": 0, "maximum": 9, "not": {"type": "integer",
           "maximum": 5}}}, "required": ["x"]})",
       {R"({"x":7})"},
       {R"({"x":5})"}},
      {R"({"oneOf": [{"type": "object", "properties": {"x": {"type": "integer",
           "minimum": 0, "maximum": 10}}, "required": ["x"]},
           {"type": "object", "properties": {"x": {"type": "integer",
           "minimum": 5, "maximum": 20}}, "required": ["x"]}]})",
       {R"({"x":4})", R"({"x":11})"},
       {R"({"x":8})"}}};
  for (const Numbers& c : cases) {
    for (const bool open : {false, true}) {
      SchemaOptions options;
      options.open = open;
      Matcher matches(FromJsonSchema(Json::parse(c.schema), options));
      for (const char* text : c.yes) {
        EXPECT_TRUE(matches(text)) << c.schema << " " << text;
      }
      for (const char* text : c.no) {
        EXPECT_FALSE(matches(text)) << c.schema << " " << text;
      }
    }
  }
  EXPECT_THAT(Refusal(FromJsonSchema(Json::parse(R"({"type": "integer",
                                  "not": {"type": "integer"}})"))),
              HasSubstr("allows nothing"));
}

TEST(JsonSchema, DropsByNameWhatItCannotKeep) {
  const Json schema = Json::parse(R"x({"type": "object", "properties": {
      "a": {"type": "string", "pattern": "(?<=x)y", "maxLength": 2},
      "b": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true,
            "minItems": 1}, "c": {"type": "string", "format": "thing"}},
      "required": ["a", "b"], "whatever": 1})x");
  EXPECT_FALSE(FromJsonSchema(schema).ok());
  SchemaOptions options;
  options.strict = false;
  const auto made = FromJsonSchema(schema, options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->dropped, ::testing::UnorderedElementsAre(
                                 HasSubstr("#: keyword 'whatever'"),
                                 HasSubstr("#/properties/a: pattern at"),
                                 HasSubstr("#/properties/b: uniqueItems"),
                                 HasSubstr("#/properties/c: format 'thing'")));
  // The rest is kept.
  Matcher matches(made);
  EXPECT_TRUE(matches(R"({"a":"zz","b":[1,1]})"));
  EXPECT_FALSE(matches(R"({"a":"zzz","b":[1]})"));
  EXPECT_FALSE(matches(R"({"a":"zz","b":[]})"));
  EXPECT_FALSE(matches(R"({"a":"zz"})"));
}

TEST(JsonSchema, OpenAllowsWhateverIsValid) {
  SchemaOptions options;
  options.open = true;
  Matcher matches(
      FromJsonSchema(Json::parse(R"({"properties": {"a": {"type": "integer"},
                      "b": {"maxLength": 1}}, "required": ["a"]})"),
                     options));
  for (const char* text :
       {R"({"b":"x","a":1})", R"({"c":[],"a":1.0,"d":{}})", "3", "\"\"",
        R"({"a":123456789012345678901234567890,"b":null})"}) {
    EXPECT_TRUE(matches(text)) << text;
  }
  for (const char* text : {R"({"b":"x"})", R"({"a":1.5})", R"({"a":1,"a":1})",
                           R"({"a":1,"b":"xy"})"}) {
    EXPECT_FALSE(matches(text)) << text;
  }
}

TEST(JsonSchema, JsonModeIsAnyObject) {
  Matcher matches(AnyJsonObject());
  EXPECT_TRUE(matches("{\"a\": [1, {\"b\": \"c\"}], \"d\": {}}"));
  EXPECT_FALSE(matches("[1]"));
  EXPECT_FALSE(matches("{\"a\": }"));
}

}  // namespace
}  // namespace weft::grammar
