// The formats of strings that JSON Schema names, as regular expressions.
//
// Sources: RFC 3339 (date, time, date-time, duration), 3986 (uri,
// uri-reference), 3987 (iri, iri-reference), 4122 (uuid), 5321 and 1123 (email,
// hostname), 2673 (ipv4), 4291 (ipv6), 6570 (uri-template), 6901
// (json-pointer); byte is OpenAPI's base64.
//
// Narrower than their sources, for texts that all readers take: no quoted local
// parts and no literal addresses in email; a host after //, but for file; host
// names of at most 4 labels of 62 characters or 12 of 19; leap seconds only at
// 23:59:60Z; numbers of at most 9 digits in durations and fractions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace weft::grammar {

// For pattern.h; empty where the format is not known. `usual`: only as all
// readers take it, though more is valid: T and Z of a time in capitals.
std::string FormatPattern(absl::string_view name, bool usual = false);

// What could be used instead, for messages.
inline constexpr char kFormats[] =
    "byte, date, date-time, duration, email, hostname, idn-email, ipv4, ipv6, "
    "iri, iri-reference, json-pointer, relative-json-pointer, time, uri, "
    "uri-reference, uri-template, uuid";

}  // namespace weft::grammar
