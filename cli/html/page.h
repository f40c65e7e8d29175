// One html file that shows a program and needs nothing else: no network, no
// other file.
//
// The page's parts are files in this folder (page.html, page.css and scripts of
// plain JavaScript), embedded at build time. Text from models reaches the page
// as data only: JSON in an element that is no program, from which the scripts
// make text nodes; and the page's policy allows no script but its own.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace weft {

// `program` is what ProgramData gives.
std::string HtmlPage(const nlohmann::json& program);

}  // namespace weft
