// Pages in Chromium without a screen, where it is installed (Debian's package
// chromium).
#pragma once

#include <string>

namespace weft {

// Skips the running test where there is no Chromium; call it in SetUp.
void NeedChromium();

// `html` with a list of all errors from the start on, and with this script at
// its end, which calls runChecks(`checks`) of the file `script`.
std::string WithChecks(std::string html, const std::string& script,
                       const std::string& checks);

// When the page is looked at: when its clock, which runs ahead as fast as it
// can, shows a minute; or when all that it loads is there, by the real clock.
enum class Until { kMinuteOfItsOwn, kLoaded };

// Opens the address and expects, in an element #report, a line "ok NAME" for
// each check and "finished"; the lines are the page's own (page/checks.js).
void ExpectChecksPass(const std::string& url,
                      const std::string& size = "1280,800",
                      Until until = Until::kMinuteOfItsOwn);

}  // namespace weft
