// The chat page at "/": one html file that needs nothing but this server.
//
// The page's parts are files in this folder (page.html, page.css and scripts of
// plain JavaScript), embedded at build time. What a model or a user writes
// reaches the page as text nodes only, and its policy allows no script but its
// own and no connection but to where it came from.
#pragma once

#include <string>

namespace weft {

const std::string& ChatPage();

// The value of Content-Security-Policy that the page is sent with.
const char* ChatPagePolicy();

}  // namespace weft
