// What scrolls sideways inside its box can be reached and scrolled by keyboard.
function letScrollersBeReached() {
  const boxes = "div.math, .pst-scrollable-table-container, .bd-article pre";
  for (const box of document.querySelectorAll(boxes)) {
    const scrolls = box.scrollWidth > box.clientWidth + 1;
    if (scrolls) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
letScrollersBeReached();
addEventListener("load", letScrollersBeReached);
addEventListener("resize", letScrollersBeReached);
// A page opened from a file may not read other pages, as search summaries do.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
