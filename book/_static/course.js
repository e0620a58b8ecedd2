// The stylesheet leaves what is far from the screen for later (`content-visibility`), so
// that a page of ten thousand elements is there at once. When nothing else happens the
// rest is laid out, a few milliseconds at a time, and what scrolls sideways inside its
// box is made reachable by keyboard.
const whenIdle = (work) => (window.requestIdleCallback
  ? requestIdleCallback(work, { timeout: 30 }) : setTimeout(work, 10));
const BLOCKS = ".bd-article section > :not(section, h1, h2, h3, h4)";
const BOXES = "div.math, .pst-scrollable-table-container, td.course-wide, .bd-article pre, "
  + ".cell_output > .output";
const AT_A_TIME = 5;  // milliseconds: what a phone does in a frame or two

function letBeReached(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}
function layOut(blocks) {
  blocks.forEach((block) => { block.style.contentVisibility = "visible"; });
  for (const block of blocks) {
    if (block.matches(BOXES)) letBeReached(block);
    block.querySelectorAll(BOXES).forEach(letBeReached);
  }
}
async function layOutTheRest() {
  const blocks = [...document.querySelectorAll(BLOCKS)];
  let count = 1;
  while (blocks.length) {
    await new Promise(whenIdle);
    const began = performance.now();
    layOut(blocks.splice(0, count));
    void document.body.offsetHeight;  // lays out what is left, so that the clock sees it
    count = Math.ceil((count * AT_A_TIME) / Math.max(performance.now() - began, 1));
  }
}
// A link into a page: what stands before the place is laid out first, or the place would
// move away under the reader. Interactives are drawn later, so once all is done the page
// goes there again, unless the reader has gone somewhere else.
const placeOf = (hash) => {
  try { return document.getElementById(decodeURIComponent(hash.slice(1))); }
  catch { return null; }  // not the name of a place
};
function goToPlace(event) {
  const place = location.hash && placeOf(location.hash);
  if (!place) return;
  layOut([...document.querySelectorAll(BLOCKS)].filter((block) => block.contains(place)
    || block.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING));
  place.scrollIntoView({ behavior: event ? "auto" : "instant" });
}
let moved = false;
["wheel", "touchmove", "keydown", "pointerdown"].forEach((act) =>
  addEventListener(act, () => { moved = true; }, { once: true, passive: true }));
goToPlace();
addEventListener("hashchange", goToPlace);
layOutTheRest().then(() => { if (!moved) goToPlace(); });
addEventListener("resize", () => document.querySelectorAll(BOXES).forEach(letBeReached));

// "On this page" marks the section that is being read: the one a quarter down the screen.
const contents = new Map([...document.querySelectorAll(".page-toc a[href^='#']")]
  .map((link) => [placeOf(link.hash), link]).filter(([section]) => section));
const reading = new IntersectionObserver((seen) => seen.forEach((section) => {
  const link = contents.get(section.target);
  if (section.isIntersecting) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}), { rootMargin: "-25% 0px -75% 0px" });
contents.forEach((_, section) => reading.observe(section));

// A page opened from a file may not read other pages, as search summaries do.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
