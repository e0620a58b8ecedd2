// The stylesheet leaves what is far from the screen for later (`content-visibility`), so
// that a page of ten thousand elements is there at once. When nothing else happens the
// rest is laid out, a few milliseconds at a time, and what scrolls sideways inside its
// box is made reachable by keyboard.
const whenIdle = (work) => (window.requestIdleCallback
  ? requestIdleCallback(work, { timeout: 30 }) : setTimeout(work, 10));
const BLOCKS = ".bd-article section > :not(section, h1, h2, h3, h4)";
const BOXES = "div.math, .pst-scrollable-table-container, .bd-article pre, "
  + ".cell_output > .output";
const AT_A_TIME = 10;  // milliseconds

function letBeReached(box) {
  if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}
async function layOutTheRest() {
  const blocks = [...document.querySelectorAll(BLOCKS)];
  let count = 10;
  while (blocks.length) {
    await new Promise(whenIdle);
    const began = performance.now();
    const share = blocks.splice(0, count);
    share.forEach((block) => { block.style.contentVisibility = "visible"; });
    for (const block of share) {
      if (block.matches(BOXES)) letBeReached(block);
      block.querySelectorAll(BOXES).forEach(letBeReached);
    }
    void document.body.offsetHeight;  // lays out what is left, so that the clock sees it
    count = Math.ceil((count * AT_A_TIME) / Math.max(performance.now() - began, 1));
  }
}
layOutTheRest();
addEventListener("resize", () => document.querySelectorAll(BOXES).forEach(letBeReached));
// A page opened from a file may not read other pages, as search summaries do.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
