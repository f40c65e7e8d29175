#include "text/grammar/formats.h"

#include "absl/strings/str_cat.h"

namespace weft::grammar {
namespace {

std::string Date() {
  return "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|"
         "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))|"
         "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|"
         "(?:[02468][048]|[13579][26])00)-02-29)";
}

std::string Time(const std::string& z) {
  return absl::StrCat(
      "(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?(?:", z,
      "|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)|23:59:60(?:\\.\\d{1,9})?(?:", z,
      "|[+-]00:00))");
}

std::string Duration() {
  const std::string n = "\\d{1,9}";
  const std::string seconds = n + "S";
  const std::string minutes = absl::StrCat(n, "M(?:", seconds, ")?");
  const std::string hours = absl::StrCat(n, "H(?:", minutes, ")?");
  const std::string time =
      absl::StrCat("T(?:", hours, "|", minutes, "|", seconds, ")");
  const std::string days = n + "D";
  const std::string months = absl::StrCat(n, "M(?:", days, ")?");
  const std::string years = absl::StrCat(n, "Y(?:", months, ")?");
  return absl::StrCat("P(?:", n, "W|(?:", years, "|", months, "|", days,
                      ")(?:", time, ")?|", time, ")");
}

std::string Ipv4() {
  const std::string part = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
  return absl::StrCat("(?:", part, "\\.){3}", part);
}

std::string Ipv6() {
  const std::string h = "[0-9a-fA-F]{1,4}";
  const std::string last = absl::StrCat("(?:", h, ":", h, "|", Ipv4(), ")");
  std::string all = absl::StrCat("(?:", h, ":){6}", last);
  // With :: for the groups that are left out; before it up to n, behind it 5-n
  // and two, or fewer.
  for (int after = 5; after >= 0; --after) {
    const std::string before =
        after == 5
            ? ""
            : absl::StrCat("(?:(?:", h, ":){0,", 4 - after, "}", h, ")?");
    absl::StrAppend(&all, "|", before, "::(?:", h, ":){", after, "}", last);
  }
  absl::StrAppend(&all, "|(?:(?:", h, ":){0,5}", h, ")?::", h, "|(?:(?:", h,
                  ":){0,6}", h, ")?::");
  return absl::StrCat("(?:", all, ")");
}

std::string Hostname() {
  const auto labels = [](int most, int count) {
    const std::string label = absl::StrCat("[0-9A-Za-z](?:[0-9A-Za-z-]{0,",
                                           most - 2, "}[0-9A-Za-z])?");
    return absl::StrCat(label, "(?:\\.", label, "){0,", count - 1, "}");
  };
  // Without hyphens at the third and fourth place, where other alphabets are
  // written so.
  return absl::StrCat("(?!..--)(?!.*\\...--)(?:", labels(62, 4), "|",
                      labels(19, 12), ")");
}

std::string Email(const std::string& more) {
  const std::string atom =
      absl::StrCat("[0-9A-Za-z!#$%&'*+/=?^_`{|}~", more, "-]+");
  return absl::StrCat(atom, "(?:\\.", atom, ")*@(?:", Hostname(), ")");
}

// `more`: further characters that stand for themselves, in classes.
struct Uris {
  explicit Uris(const std::string& more) {
    const std::string escape = "%[0-9A-Fa-f]{2}";
    const std::string plain =
        absl::StrCat("0-9A-Za-z._~!$&'()*+,;=", more, "-");
    const auto any = [&](absl::string_view also) {
      return absl::StrCat("(?:[", also, plain, "]|", escape, ")");
    };
    const std::string character = any(":@");
    const std::string path = absl::StrCat("(?:/", character, "*)*");
    const std::string host = absl::StrCat(
        "(?:\\[(?:", Ipv6(),
        "|v[0-9A-Fa-f]+\\.[:0-9A-Za-z._~!$&'()*+,;=-]+)\\]|", any(""), "+)");
    const std::string authority =
        absl::StrCat("(?:", any(":"), "*@)?", host, "(?::\\d*)?");
    const std::string rooted = absl::StrCat("/(?:", character, "+", path, ")?");
    const std::string end =
        absl::StrCat("(?:\\?", any(":@/?"), "*)?(?:#", any(":@/?"), "*)?");
    absolute = absl::StrCat("(?:[A-Za-z][0-9A-Za-z+.-]*:(?://", authority, path,
                            "|", rooted, "|", character, "+", path,
                            ")|[Ff][Ii][Ll][Ee]://", path, ")", end);
    reference = absl::StrCat("(?:", absolute, "|(?://", authority, path, "|",
                             rooted, "|", any("@"), "+", path, ")?", end, ")");
  }
  std::string absolute, reference;
};

// What RFC 3987 adds.
constexpr char kUnicode[] =
    "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}\\u{10000}-"
    "\\u{1FFFD}\\u{20000}-\\u{2FFFD}";

std::string UriTemplate() {
  const std::string name =
      "(?:\\w|%[0-9A-Fa-f]{2})(?:\\.?(?:\\w|%[0-9A-Fa-f]{2}))*"
      "(?::[1-9]\\d{0,3}|\\*)?";
  return absl::StrCat("(?:[!#$&'()*+,./0-9:;=?@A-Z_a-z~\\[\\]", kUnicode,
                      "-]|%[0-9A-Fa-f]{2}|\\{[+#./;?&]?", name, "(?:,", name,
                      ")*\\})*");
}

constexpr char kPointer[] = "(?:/(?:[^/~]|~[01])*)*";

std::string Inside(absl::string_view name, bool usual) {
  const std::string t = usual ? "T" : "[Tt]", z = usual ? "Z" : "[Zz]";
  if (name == "date") return Date();
  if (name == "time") return Time(z);
  if (name == "date-time") return absl::StrCat(Date(), t, Time(z));
  if (name == "duration") return Duration();
  if (name == "uuid") {
    return "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
  }
  if (name == "ipv4") return Ipv4();
  if (name == "ipv6") return Ipv6();
  if (name == "hostname") return Hostname();
  if (name == "email") return Email("");
  if (name == "idn-email") return Email(kUnicode);
  if (name == "uri") return Uris("").absolute;
  if (name == "uri-reference") return Uris("").reference;
  if (name == "iri") return Uris(kUnicode).absolute;
  if (name == "iri-reference") return Uris(kUnicode).reference;
  if (name == "uri-template") return UriTemplate();
  if (name == "json-pointer") return kPointer;
  if (name == "relative-json-pointer") {
    return absl::StrCat("(?:0|[1-9]\\d*)(?:#|", kPointer, ")");
  }
  if (name == "byte") {
    return "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";
  }
  return "";
}

}  // namespace

std::string FormatPattern(absl::string_view name, bool usual) {
  const std::string inside = Inside(name, usual);
  return inside.empty() ? "" : absl::StrCat("^(?:", inside, ")$");
}

}  // namespace weft::grammar
