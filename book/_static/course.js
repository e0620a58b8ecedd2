// What scrolls sideways inside its box can be reached and scrolled by keyboard. Boxes are
// measured in small portions while nothing else happens: measuring lays them out.
const whenIdle = window.requestIdleCallback
  || ((work) => setTimeout(() => work({ timeRemaining: () => 8 }), 30));
let round = 0;
function letScrollersBeReached() {
  const boxes = [...document.querySelectorAll(
    "div.math, .pst-scrollable-table-container, .bd-article pre")];
  const own = ++round;  // a later call takes over
  return new Promise((done) => {
    const portion = (deadline) => {
      while (own === round && boxes.length && deadline.timeRemaining() > 1) {
        const box = boxes.shift();
        const scrolls = box.scrollWidth > box.clientWidth + 1;
        if (scrolls) box.tabIndex = 0;
        else box.removeAttribute("tabindex");
      }
      if (own === round && boxes.length) whenIdle(portion);
      else done();
    };
    whenIdle(portion);
  });
}
addEventListener("load", letScrollersBeReached);
addEventListener("resize", letScrollersBeReached);
// A page opened from a file may not read other pages, as search summaries do.
if (location.protocol === "file:" && window.DOCUMENTATION_OPTIONS) {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
