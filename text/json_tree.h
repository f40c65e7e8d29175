// Values of JSON that remember how their numbers were written, and how they are
// made and written.
//
// Idea: nlohmann's values hold numbers as doubles, so 1.10, a number of thirty
// digits or 1E400 come back otherwise. Where texts that a model wrote or reads
// go through (arguments of calls, schemas of tools), a number that would be
// written in another way is kept as a binary value, which is no JSON otherwise:
// its bytes are the spelling. Whoever computes with values asks PlainNumbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace weft {

// Objects and lists within each other, and fields of one object (which keeps
// their order; whoever reads one looks along all the others).
constexpr int kMaxJsonDepth = 64;
constexpr int kMaxJsonFields = 4096;
// What the values may take in memory, as counted: 32 bytes each, some more for
// a list or object, 64 and its bytes for a string. Two million token ids.
constexpr int64_t kMaxJsonBytes = 64 << 20;

// The number that is spelled so.
nlohmann::ordered_json NumberOf(absl::string_view spelling);
bool IsSpelledNumber(const nlohmann::ordered_json& value);
// Of one for which that is true.
std::string SpellingOf(const nlohmann::ordered_json& value);

// As text, numbers as they were spelled; bytes that are no UTF-8 become U+FFFD.
std::string WriteJson(const nlohmann::ordered_json& value);
// The same value with all numbers as doubles, rounded where these are not
// enough; what is beyond them is infinite.
nlohmann::ordered_json PlainNumbers(nlohmann::ordered_json value);

// JSON text with U+FFFD (\ufffd) in place of each half of a surrogate pair that
// stands alone: such text is JSON, but no character, and parsers refuse it.
std::string WithoutLoneSurrogates(absl::string_view json);

// Builds a value of what a parser reports, within the bounds above: counting
// what it takes before it is taken, and finding the fields of large objects by
// hash (the ordered object of nlohmann looks along all of them for each that is
// added). Of a field that is there twice, the last stays.
class JsonTree : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  enum class Spelling {
    kPlain,  // numbers are doubles
    // Those in these fields of the outermost object keep their spelling.
    kInFields,
    kAll,
  };
  // `what` is what errors call the text.
  JsonTree(std::string what, Spelling spelling,
           std::vector<std::string> fields = {})
      : what_(std::move(what)),
        spelling_(spelling),
        kept_(std::move(fields)),
        keeps_(spelling == Spelling::kAll) {}

  bool null() override { return Put(nullptr, 0); }
  bool boolean(bool value) override { return Put(value, 0); }
  bool number_integer(number_integer_t value) override { return Put(value, 0); }
  bool number_unsigned(number_unsigned_t value) override {
    return Put(value, 0);
  }
  bool number_float(number_float_t value, const string_t& spelled) override;
  // A number by its text alone.
  bool number(absl::string_view spelled);
  bool string(string_t& value) override;
  bool binary(binary_t&) override { return Fail("binary values are no JSON"); }
  bool start_object(size_t) override;
  bool start_array(size_t) override;
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override;
  bool parse_error(size_t at, const std::string& last,
                   const nlohmann::detail::exception& error) override;

  // Errors have the code kInvalidArgument.
  absl::StatusOr<nlohmann::ordered_json> Take();

 private:
  // A list or object that has not ended.
  struct Level {
    nlohmann::ordered_json* value = nullptr;
    nlohmann::ordered_json* field = nullptr;         // whose value comes next
    absl::flat_hash_map<std::string, size_t> index;  // of fields, when many
  };

  bool Fail(absl::string_view message);
  bool Spend(int64_t bytes);
  nlohmann::ordered_json* Place(nlohmann::ordered_json value);
  bool Put(nlohmann::ordered_json value, int64_t bytes);
  bool Open(nlohmann::ordered_json value);
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::string what_;
  const Spelling spelling_;
  const std::vector<std::string> kept_;
  bool keeps_;  // what comes now
  nlohmann::ordered_json root_;
  std::vector<Level> open_;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace weft
