#include "text/grammar/schema_document.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace weft::grammar {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 200;

bool IsDeeperThan(const Json& json, int depth) {
  if (!json.is_structured()) return false;
  return depth == 0 ||
         std::any_of(json.begin(), json.end(), [&](const Json& below) {
           return IsDeeperThan(below, depth - 1);
         });
}

// The name that a schema gives itself; null if it has none.
const std::string* NameOf(const Json& schema) {
  if (!schema.is_object()) return nullptr;
  for (const char* key : {"$id", "id"}) {
    const auto found = schema.find(key);
    if (found == schema.end() || !found->is_string()) continue;
    const auto& name = found->get_ref<const std::string&>();
    if (!name.empty() && name[0] != '#') return &name;
  }
  return nullptr;
}

bool HasScheme(absl::string_view uri) {
  size_t i = 0;
  while (i < uri.size() && (absl::ascii_isalnum(uri[i]) || uri[i] == '+' ||
                            uri[i] == '-' || uri[i] == '.')) {
    ++i;
  }
  return i > 0 && i < uri.size() && uri[i] == ':' &&
         absl::ascii_isalpha(uri[0]);
}

// Without a fragment.
std::string Resolve(const std::string& base, absl::string_view name) {
  if (name.empty()) return base;
  if (HasScheme(name)) return std::string(name);
  const size_t colon = base.find(':');
  if (name.substr(0, 2) == "//") {
    return absl::StrCat(base.substr(0, colon + 1), name);
  }
  const size_t authority = base.find("//");
  const size_t path =
      authority == base.npos
          ? 0
          : std::min(base.find('/', authority + 2), base.size());
  if (name[0] == '/') return absl::StrCat(base.substr(0, path), name);
  const size_t slash = base.rfind('/');
  return slash == base.npos ? std::string(name)
                            : absl::StrCat(base.substr(0, slash + 1), name);
}

std::string Unescaped(absl::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t code = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        absl::SimpleHexAtoi(text.substr(i + 1, 2), &code)) {
      made.push_back(static_cast<char>(code));
      i += 2;
    } else {
      made.push_back(text[i]);
    }
  }
  return made;
}

}  // namespace

SchemaDocument::SchemaDocument(const Json& schema) : root_(schema) {
  bases_[&root_] = "";
  named_[""] = root();
  if (IsDeeperThan(schema, kMaxDepth)) {
    status_ =
        absl::InvalidArgumentError("JSON schema: #: it is nested too deeply");
    return;
  }
  Note(root(), "");
}

void SchemaDocument::Note(const SchemaPlace& at, const std::string& base) {
  std::string inner = base;
  if (const std::string* name = NameOf(*at.schema)) {
    inner = Resolve(base, absl::string_view(*name).substr(0, name->find('#')));
    bases_[at.schema] = inner;
    named_.try_emplace(inner, at);
  }
  if (at.schema->is_object()) {
    const auto dynamic = at.schema->find("$dynamicAnchor");
    if (dynamic != at.schema->end() && dynamic->is_string()) {
      ++dynamic_[*dynamic];
    }
    const auto recursive = at.schema->find("$recursiveAnchor");
    if (recursive != at.schema->end()) ++dynamic_[""];
    for (const char* key : {"$anchor", "$dynamicAnchor", "$id", "id"}) {
      const auto found = at.schema->find(key);
      if (found == at.schema->end() || !found->is_string()) continue;
      std::string anchor = *found;
      if (key[1] != 'a' && key[1] != 'd') {
        const size_t hash = anchor.find('#');
        anchor = hash == anchor.npos ? "" : anchor.substr(hash + 1);
      }
      if (anchor.empty()) continue;
      named_.try_emplace(absl::StrCat(inner, "#", anchor), at);
    }
  }
  for (const auto& entry : at.schema->items()) {
    if (!entry.value().is_structured()) continue;
    if (at.schema->is_object() &&
        (entry.key() == "enum" || entry.key() == "const" ||
         entry.key() == "default" || entry.key() == "examples")) {
      continue;
    }
    Note(Below(at, entry.value()), inner);
  }
}

SchemaPlace SchemaDocument::Below(const SchemaPlace& from, const Json& schema) {
  return {&schema, NameOf(schema) != nullptr ? &schema : from.resource};
}

SchemaPlace SchemaDocument::ByPointer(SchemaPlace at,
                                      absl::string_view pointer) const {
  for (size_t begin = 1; begin <= pointer.size();) {
    const size_t end = std::min(pointer.find('/', begin), pointer.size());
    const std::string key =
        absl::StrReplaceAll(Unescaped(pointer.substr(begin, end - begin)),
                            {{"~1", "/"}, {"~0", "~"}});
    const Json* next = nullptr;
    size_t index = 0;
    if (at.schema->is_object()) {
      const auto found = at.schema->find(key);
      if (found != at.schema->end()) next = &*found;
    } else if (at.schema->is_array() && absl::SimpleAtoi(key, &index) &&
               index < at.schema->size()) {
      next = &(*at.schema)[index];
    }
    if (next == nullptr) return {};
    at = Below(at, *next);
    begin = end + 1;
  }
  return at;
}

int SchemaDocument::dynamic_anchors(const std::string& reference) const {
  const auto found = dynamic_.find(reference.substr(
      std::min(reference.find('#'), reference.size() - 1) + 1));
  return found == dynamic_.end() ? 0 : found->second;
}

SchemaPlace SchemaDocument::Find(const SchemaPlace& from,
                                 const std::string& reference) const {
  const size_t hash = std::min(reference.find('#'), reference.size());
  const auto base = bases_.find(from.resource);
  const std::string uri = Resolve(base == bases_.end() ? "" : base->second,
                                  absl::string_view(reference).substr(0, hash));
  const auto found = named_.find(uri);
  if (found == named_.end()) return {};
  const std::string fragment =
      hash < reference.size() ? reference.substr(hash + 1) : "";
  if (fragment.empty()) return found->second;
  if (fragment[0] == '/') return ByPointer(found->second, fragment);
  const auto anchored =
      named_.find(absl::StrCat(uri, "#", Unescaped(fragment)));
  return anchored == named_.end() ? SchemaPlace() : anchored->second;
}

}  // namespace weft::grammar
