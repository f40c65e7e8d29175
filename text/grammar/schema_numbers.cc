#include "text/grammar/schema_numbers.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "text/grammar/json_terms.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxDigits = 400;
constexpr int64_t kMostDigits = 18;  // of what is generated
constexpr int64_t kMaxMultipleStates = 20000;

Term Digit(char first, char last) {
  return Class(
      {{static_cast<unsigned char>(first), static_cast<unsigned char>(last)}});
}

// Any digits, at least `least`.
Term Digits(int64_t least, bool open) {
  return Repeat(Digit('0', '9'), least,
                open ? Term::kUnlimited : std::max(kMostDigits, least));
}

Term Zeros(int64_t least) { return Repeat(Digit('0', '0'), least); }

// Digits of which one is not 0.
Term NotZero(bool open) {
  return Sequence({Zeros(0), Digit('1', '9'), Digits(0, open)});
}

// What is behind a whole part.
Term AnyFraction(bool open) {
  return Optional(Sequence({Literal("."), Digits(1, open)}));
}

// Digits from 1 on as many as may be, or 0.
Term Natural(int64_t most_digits, bool open) {
  if (open) most_digits = std::max(most_digits, kOpenDigits);
  return Choice(
      {Literal("0"), Sequence({Digit('1', '9'),
                               Repeat(Digit('0', '9'), 0, most_digits - 1)})});
}

std::string Whole(const Decimal& d) { return d.whole.empty() ? "0" : d.whole; }

// One more.
std::string Next(std::string digits) {
  size_t i = digits.size();
  while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
  if (i == 0) return "1" + digits;
  ++digits[i - 1];
  return digits;
}

// Fractions of at least (more than) `at`.
Term FractionAtLeast(const std::string& at, bool exclusive, bool open) {
  if (at.empty()) {
    return exclusive ? Sequence({Literal("."), NotZero(open)})
                     : AnyFraction(open);
  }
  Term choice = Choice({});
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] == '9') continue;
    choice.parts.push_back(
        Sequence({Literal(at.substr(0, i)),
                  Digit(static_cast<char>(at[i] + 1), '9'), Digits(0, open)}));
  }
  choice.parts.push_back(
      Sequence({Literal(at), exclusive ? NotZero(open) : Digits(0, open)}));
  return Sequence({Literal("."), std::move(choice)});
}

// Fractions of at most (less than) `at`.
Term FractionAtMost(const std::string& at, bool exclusive, bool open) {
  Term choice = Choice({});
  if (at.empty()) {
    if (exclusive) return choice;
    return Optional(Sequence({Literal("."), Zeros(1)}));
  }
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] != '0') {
      choice.parts.push_back(Sequence({Literal(at.substr(0, i)),
                                       Digit('0', static_cast<char>(at[i] - 1)),
                                       Digits(0, open)}));
    }
    if (i > 0) choice.parts.push_back(Literal(at.substr(0, i)));
  }
  if (!exclusive) {
    choice.parts.push_back(Sequence({Literal(at), Zeros(0)}));
  }
  return Optional(Sequence({Literal("."), std::move(choice)}));
}

Term MagnitudeAtLeast(const Decimal& d, bool exclusive, bool open) {
  const std::string whole = Whole(d);
  Term choice = Choice({Sequence(
      {Literal(whole), FractionAtLeast(d.fraction, exclusive, open)})});
  const auto most =
      std::max<size_t>(open ? kOpenDigits : kMostDigits, Next(whole).size());
  Term above = NaturalBetween(Next(whole), std::string(most, '9'));
  choice.parts.push_back(Sequence({std::move(above), AnyFraction(open)}));
  return choice;
}

Term MagnitudeAtMost(const Decimal& d, bool exclusive, bool open) {
  const std::string whole = Whole(d);
  Term choice = Choice({Sequence(
      {Literal(whole), FractionAtMost(d.fraction, exclusive, open)})});
  if (!d.whole.empty()) {
    // One less: all that is shorter, or equally long and below.
    std::string below = whole;
    size_t i = below.size();
    while (below[i - 1] == '0') below[--i] = '9';
    --below[i - 1];
    if (below.size() > 1 && below[0] == '0') below.erase(0, 1);
    choice.parts.push_back(
        Sequence({NaturalBetween("0", below), AnyFraction(open)}));
  }
  return choice;
}

// The numbers from `bound` on, or up to it.
absl::StatusOr<StringLanguage> HalfLine(const NumberRules::Bound& bound,
                                        bool upwards, bool open,
                                        Budget* budget) {
  const Decimal& d = bound.at;
  const Term any = Sequence({Natural(kMostDigits, open), AnyFraction(open)});
  const bool on_side = d.zero() ? true : d.negative != upwards;
  // Without a sign in front, as if upwards.
  const auto positive = [&](Term magnitude) {
    return StringLanguage::Of(
        upwards ? std::move(magnitude)
                : Sequence({Literal("-"), std::move(magnitude)}),
        budget);
  };
  // Never -0.
  const Term above_zero = MagnitudeAtLeast({}, true, open);
  if (on_side) {
    auto made = positive(d.zero() && !upwards
                             ? above_zero
                             : MagnitudeAtLeast(d, bound.exclusive, open));
    if (!made.ok() || !d.zero() || upwards || bound.exclusive) return made;
    auto zero = StringLanguage::Of(NumberTexts({}), budget);
    if (!zero.ok()) return zero;
    return made->Or(*zero, budget);
  }
  // All of that side, and of the other what is near.
  Term side = upwards ? any : Sequence({Literal("-"), above_zero});
  auto made = StringLanguage::Of(std::move(side), budget);
  if (!made.ok()) return made;
  Term near = MagnitudeAtMost(d, bound.exclusive, open);
  auto magnitude = StringLanguage::Of(near, budget);
  if (!magnitude.ok()) return magnitude;
  if (!upwards) return made->Or(*magnitude, budget);
  auto no_zero = StringLanguage::Of(above_zero, budget);
  if (!no_zero.ok()) return no_zero;
  auto signless = magnitude->And(*no_zero, budget);
  if (!signless.ok()) return signless;
  // With the sign in front.
  Nfa nfa;
  const int32_t begin = nfa.Characters({{'-', '-'}}, nfa.Copy(*signless));
  auto negative = StringLanguage::Of(nfa, begin, budget);
  if (!negative.ok()) return negative;
  return made->Or(*negative, budget);
}

// Digits without the point: how many of them stand behind it (or, below zero,
// zeros that are left out at the end).
struct Scaled {
  uint64_t digits = 0;
  int64_t shift = 0;
};
std::optional<Scaled> ScaledOf(const Decimal& d) {
  Scaled made;
  std::string digits = d.whole + d.fraction;
  made.shift = static_cast<int64_t>(d.fraction.size());
  while (made.shift <= 0 && digits.size() > 1 && digits.back() == '0') {
    digits.pop_back();
    --made.shift;
  }
  if (digits.size() > 18 || !absl::SimpleAtoi(digits, &made.digits) ||
      made.digits == 0) {
    return std::nullopt;
  }
  return made;
}

// Texts of multiples of `d`; by the remainder of what has been read.
absl::StatusOr<StringLanguage> MultiplesOf(const Decimal& d, Budget* budget) {
  const std::optional<Scaled> scaled = ScaledOf(d);
  const int64_t shift = scaled ? std::max<int64_t>(scaled->shift, 0) : 0;
  if (!scaled || scaled->digits > uint64_t{kMaxMultipleStates} ||
      static_cast<int64_t>(scaled->digits) * (shift + 2) > kMaxMultipleStates) {
    return absl::InvalidArgumentError(
        "is not supported for a number of so many digits");
  }
  const auto m = static_cast<int64_t>(scaled->digits);
  Nfa nfa;
  const int32_t end = nfa.NewState();
  nfa.at(end).accepts = true;
  // Zeros behind the point that change nothing.
  const int32_t zeros = nfa.NewState();
  nfa.at(zeros).accepts = true;
  nfa.at(zeros).edges.push_back({{{'0', '0'}}, zeros});
  const int32_t point =
      nfa.Characters({{'.', '.'}}, nfa.Characters({{'0', '0'}}, zeros));
  nfa.at(end).empty.emplace_back(point, Nfa::kAlways);
  // The remainder of what was read, times 10 for each digit of the shift that
  // has not come: read[k][r] after k digits behind the point.
  std::vector<std::vector<int32_t>> read(shift + 1);
  for (auto& states : read) {
    for (int64_t r = 0; r < m; ++r) states.push_back(nfa.NewState());
  }
  std::vector<int64_t> power(shift + 1, 1);
  for (int64_t k = 1; k <= shift; ++k) power[k] = power[k - 1] * 10 % m;
  const auto digit_edges = [&](int32_t from, int64_t r,
                               const std::vector<int32_t>& to, char first) {
    for (char c = first; c <= '9'; ++c) {
      const auto code = static_cast<unsigned char>(c);
      nfa.at(from).edges.push_back(
          {{{code, code}}, to[(r * 10 + (c - '0')) % m]});
    }
  };
  for (int64_t k = 0; k <= shift; ++k) {
    for (int64_t r = 0; r < m; ++r) {
      const int32_t state = read[k][r];
      const bool fits = r * power[shift - k] % m == 0;
      if (k == 0) {
        digit_edges(state, r, read[0], '0');
        if (shift > 0) {
          const int32_t after = nfa.NewState();
          digit_edges(after, r, read[1], '0');
          nfa.at(state).edges.push_back({{{'.', '.'}}, after});
        }
        if (!fits) continue;
        // With the zeros that a multiple of a power of ten ends with.
        int32_t rest = end;
        for (int64_t i = scaled->shift; i < 0; ++i) {
          rest = nfa.Characters({{'0', '0'}}, rest);
        }
        nfa.at(state).empty.emplace_back(rest, Nfa::kAlways);
      } else {
        if (k < shift) digit_edges(state, r, read[k + 1], '0');
        if (fits) nfa.at(state).empty.emplace_back(zeros, Nfa::kAlways);
      }
    }
  }
  const int32_t digits = nfa.NewState();
  digit_edges(digits, 0, read[0], '1');
  // 0, alone or before a point.
  nfa.at(digits).edges.push_back({{{'0', '0'}}, end});
  if (shift > 0) {
    const int32_t after = nfa.NewState();
    digit_edges(after, 0, read[1], '0');
    nfa.at(digits).edges.push_back(
        {{{'0', '0'}}, nfa.Characters({{'.', '.'}}, after)});
  }
  const int32_t start =
      nfa.Either({digits, nfa.Characters({{'-', '-'}}, digits)});
  return StringLanguage::Of(nfa, start, budget);
}

bool IsMultiple(const Decimal& number, const Decimal& of) {
  const std::optional<Scaled> m = ScaledOf(of);
  if (!m) return false;
  std::string digits = number.whole + number.fraction;
  auto shift = static_cast<int64_t>(number.fraction.size());
  // To the scale of the finer of both.
  uint64_t divisor = m->digits;
  for (; shift < m->shift; ++shift) digits.push_back('0');
  for (int64_t s = m->shift; s < shift; ++s) {
    if (divisor > uint64_t{1000000000000000000}) return false;
    divisor *= 10;
  }
  // Digit by digit; the remainder times ten is within 128 bits.
  unsigned __int128 rest = 0;
  for (const char c : digits) {
    rest = (rest * 10 + static_cast<unsigned>(c - '0')) % divisor;
  }
  return rest == 0;
}

}  // namespace

std::optional<Decimal> DecimalOf(const Json& number) {
  std::string text = number.dump();
  Decimal made;
  if (text[0] == '-') {
    made.negative = true;
    text.erase(0, 1);
  }
  int64_t exponent = 0;
  const size_t e = text.find_first_of("eE");
  if (e != text.npos) {
    std::string power = text.substr(e + 1);
    if (power[0] == '+') power.erase(0, 1);
    if (!absl::SimpleAtoi(power, &exponent)) return std::nullopt;
    text.resize(e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits = text.substr(0, point);
  auto whole = static_cast<int64_t>(point) + exponent;
  if (point < text.size()) digits += text.substr(point + 1);
  if (std::abs(exponent) > kMaxDigits) return std::nullopt;
  if (whole < 0) {
    digits.insert(0, static_cast<size_t>(-whole), '0');
    whole = 0;
  }
  if (whole > static_cast<int64_t>(digits.size())) {
    digits.append(static_cast<size_t>(whole) - digits.size(), '0');
  }
  made.whole = digits.substr(0, whole);
  made.fraction = digits.substr(whole);
  made.whole.erase(
      0, std::min(made.whole.find_first_not_of('0'), made.whole.size()));
  while (!made.fraction.empty() && made.fraction.back() == '0') {
    made.fraction.pop_back();
  }
  if (made.zero()) made.negative = false;
  return made;
}

int Compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const int sign = a.negative ? -1 : 1;
  if (a.whole.size() != b.whole.size()) {
    return a.whole.size() < b.whole.size() ? -sign : sign;
  }
  const int order = a.whole != b.whole ? a.whole.compare(b.whole)
                                       : a.fraction.compare(b.fraction);
  return order == 0 ? 0 : order < 0 ? -sign : sign;
}

bool Fits(const NumberRules& rules, const Json& number) {
  const std::optional<Decimal> d = DecimalOf(number);
  if (!d) return rules.any() && !rules.whole;
  if (rules.whole && !d->fraction.empty()) return false;
  if (rules.fractional && d->fraction.empty()) return false;
  if (rules.least) {
    const int order = Compare(*d, rules.least->at);
    if (order < 0 || (order == 0 && rules.least->exclusive)) return false;
  }
  if (rules.most) {
    const int order = Compare(*d, rules.most->at);
    if (order > 0 || (order == 0 && rules.most->exclusive)) return false;
  }
  const auto is_multiple = [&](const Decimal& m) { return IsMultiple(*d, m); };
  return std::all_of(rules.multiples.begin(), rules.multiples.end(),
                     is_multiple) &&
         std::none_of(rules.no_multiples.begin(), rules.no_multiples.end(),
                      is_multiple) &&
         std::none_of(
             rules.excluded.begin(), rules.excluded.end(),
             [&](const Decimal& other) { return Compare(*d, other) == 0; });
}

Term NumberTexts(const Decimal& number) {
  Term made = Sequence(
      {Literal(absl::StrCat(number.negative ? "-" : "", Whole(number)))});
  made.parts.push_back(
      number.fraction.empty()
          ? Optional(Sequence({Literal("."), Zeros(1)}))
          : Sequence({Literal("." + number.fraction), Zeros(0)}));
  return made;
}

absl::StatusOr<StringLanguage> NumbersOf(const NumberRules& rules,
                                         Budget* budget) {
  if (rules.none()) return StringLanguage();
  const bool open = rules.open;
  Term fraction = AnyFraction(open);
  if (rules.whole) {
    fraction =
        open ? Optional(Sequence({Literal("."), Zeros(1)})) : Sequence({});
  } else if (rules.fractional) {
    fraction = Sequence({Literal("."), NotZero(open)});
  }
  int64_t most_digits = kMostDigits;
  for (const auto* bound : {&rules.least, &rules.most}) {
    if (!*bound) continue;
    most_digits = std::max(
        most_digits, static_cast<int64_t>(Next(Whole((*bound)->at)).size()));
  }
  absl::StatusOr<StringLanguage> made = StringLanguage::Of(
      Sequence({Optional(Literal("-")), Natural(most_digits, open), fraction}),
      budget);
  const auto restrict = [&](const absl::StatusOr<StringLanguage>& other,
                            bool without) {
    if (!made.ok()) return;
    if (!other.ok()) {
      made = other;
    } else {
      made = without ? made->ButNot(*other, budget) : made->And(*other, budget);
    }
  };
  if (rules.least) restrict(HalfLine(*rules.least, true, open, budget), false);
  if (rules.most) restrict(HalfLine(*rules.most, false, open, budget), false);
  for (const Decimal& m : rules.multiples) {
    restrict(MultiplesOf(m, budget), false);
  }
  for (const Decimal& m : rules.no_multiples) {
    restrict(MultiplesOf(m, budget), true);
  }
  for (const Decimal& excluded : rules.excluded) {
    restrict(StringLanguage::Of(NumberTexts(excluded), budget), true);
    if (!excluded.zero()) continue;
    restrict(StringLanguage::Of(Sequence({Literal("-"), NumberTexts(excluded)}),
                                budget),
             true);
  }
  return made;
}

}  // namespace weft::grammar
